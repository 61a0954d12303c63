"""The operations by name, each imported on first use."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from typing import Any, Protocol

from kernelwright.codegen.violations import SpecError, closest

OPERATIONS: Mapping[str, str] = {
    "gemm": "kernelwright.codegen.operations.gemm.operation:GEMM",
    "convolution": "kernelwright.codegen.operations.convolution.operation:CONVOLUTION",
    "attention": "kernelwright.codegen.operations.attention.operation:ATTENTION",
    "norm": "kernelwright.codegen.operations.norm.operation:NORM",
}
"""Name of each operation of this package, and where it is defined. Adding an operation adds one line here."""


class NamedOperation(Protocol):
    """The part of an operation that kernels need; :class:`kernelwright.codegen.operation.Operation` is the whole."""

    @property
    def name(self) -> str:
        """The value of ``op`` in its specs."""

    @property
    def spec_type(self) -> type[Any]:
        """The subclass of :class:`kernelwright.codegen.kernel.Spec` that describes its kernels."""

    def name_of(self, spec: Any) -> str:
        """The readable name of a spec, unique within an architecture."""


_registered: dict[str, Any] = {}


def register(operation: NamedOperation) -> None:
    """Add an operation from outside this package for as long as this process lives.

    SpecError if another operation has its name.
    """
    if operation.name in OPERATIONS or _registered.setdefault(operation.name, operation) is not operation:
        raise SpecError(f"an operation named {operation.name!r} exists already; choose another name")


def unregister(name: str) -> None:
    """Remove an operation that :func:`register` added; does nothing if there is none of that name."""
    _registered.pop(name, None)


def operation_names() -> tuple[str, ...]:
    """Return the names of all operations: those of this package, then registered ones."""
    return (*OPERATIONS, *_registered)


def lookup(name: object) -> Any:
    """Return the operation called ``name``; SpecError with the known names and the closest match if there is none."""
    if isinstance(name, str) and name in _registered:
        return _registered[name]
    if not isinstance(name, str) or name not in OPERATIONS:
        known = operation_names()
        raise SpecError(f"unknown operation op = {name!r}{closest(str(name), known)}; allowed: {', '.join(known)}")
    return _shipped(name)


@functools.cache
def _shipped(name: str) -> Any:
    module, _, attribute = OPERATIONS[name].partition(":")
    return getattr(importlib.import_module(module), attribute)
