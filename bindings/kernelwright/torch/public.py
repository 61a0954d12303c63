"""The public functions of operators: those that the modules of ``operators`` name in ``__all__``.

Type checkers and editors read ``public.pyi``, which a test writes.
"""

from __future__ import annotations

import importlib
import pkgutil

from kernelwright.torch import operators

_NAMES = sorted(one.name for one in pkgutil.iter_modules(operators.__path__) if not one.name.endswith("_test"))
_MODULES = [importlib.import_module(f"{operators.__name__}.{name}") for name in _NAMES]
MODULES = {name: module.__name__ for module in _MODULES for name in getattr(module, "__all__", ())}
"""Modules by the names that they export."""

__all__ = sorted(MODULES)
globals().update({name: getattr(module, name) for module in _MODULES for name in getattr(module, "__all__", ())})
