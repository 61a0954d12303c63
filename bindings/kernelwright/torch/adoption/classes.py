"""Subclasses of modules' classes with another ``forward``.

A module keeps its identity, attributes, parameters, hooks and ``state_dict`` when its class changes. It stays an
instance of its own class, can be copied and pickled, and ``torch.nn.utils.parametrize`` finds the classes it expects.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import nn  # pants: no-infer-dep
from torch.nn.utils import parametrize  # pants: no-infer-dep

_MADE: dict[tuple[type, Callable[..., Any]], type] = {}


def adopt_class(module: nn.Module, forward: Callable[..., Any]) -> None:
    """Give the module ``forward(module, inherited, *args, **kwargs)``; ``inherited`` is its previous class."""
    cls = type(module)
    if parametrize.is_parametrized(module):  # its class removes itself to its first base
        module.__class__ = _rebased(cls, _adopted(cls.__bases__[0], forward))
    else:
        module.__class__ = _adopted(cls, forward)


def release_class(module: nn.Module) -> bool:
    """Restore the module's previous class. Returns whether it had another one."""
    cls = type(module)
    own = vars(cls).get("_kernelwright_inherited")
    if own is not None:
        module.__class__ = own
        return True
    if is_adopted(module):  # parametrized: before adoption, or since then
        base = cls.__bases__[0]
        module.__class__ = _rebased(cls, vars(base)["_kernelwright_inherited"])
        return True
    return False


def is_adopted(module: nn.Module) -> bool:
    """Whether :func:`adopt_class` has changed its class."""
    return hasattr(type(module), "_kernelwright_inherited")


def adopted_forward(module: nn.Module) -> Callable[..., Any] | None:
    """The ``forward`` given by :func:`adopt_class`, if any."""
    return getattr(type(module), "_kernelwright_forward", None)


def inherited(module: nn.Module) -> type:
    """The class that defines what the module computes; for parametrized modules, the class below."""
    cls = type(module)
    return cls.__bases__[0] if parametrize.is_parametrized(module) else cls


def _adopted(cls: type, forward: Callable[..., Any]) -> type:
    subclass = _MADE.get((cls, forward))
    if subclass is None:

        def run(self: nn.Module, *args: Any, **kwargs: Any) -> Any:
            return forward(self, cls, *args, **kwargs)

        def reduce(self: nn.Module, _: Any) -> Any:
            return _remade, (cls, forward), self.__getstate__()

        members = {
            "forward": run,
            "__reduce_ex__": reduce,
            "__module__": cls.__module__,
            "__qualname__": cls.__qualname__,
            "__doc__": cls.__doc__,
            "_kernelwright_inherited": cls,
            "_kernelwright_forward": staticmethod(forward),
        }
        subclass = _MADE[cls, forward] = type(cls.__name__, (cls,), members)
    return subclass


def _remade(cls: type, forward: Callable[..., Any]) -> nn.Module:
    """Rebuild a module for pickle and copy."""
    made: Any = _adopted(cls, forward)
    return made.__new__(made)


def _rebased(cls: type, base: type) -> type:
    """Rebuild a parametrized class over another base."""
    members = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__")}
    return type(cls.__name__, (base, *cls.__bases__[1:]), members)
