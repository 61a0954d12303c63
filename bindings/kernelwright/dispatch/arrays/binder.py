"""Shared code of binders with a fixed number of arrays, results after inputs."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import ClassVar, Generic, TypeVar

from kernelwright.dispatch.arrays.autograd import Notice, write_notice
from kernelwright.dispatch.arrays.guards import Guard, Operands, guard_of

A = TypeVar("A", bound=ctypes.Structure)


class ArrayBinder(Generic[A]):
    """Part of :class:`kernelwright.dispatch.core.plan.Binder`; ``args_type`` is the operation's argument struct."""

    __slots__ = ("_memory", "_names", "_outputs", "brief")

    args_type: ClassVar[type[ctypes.Structure]]

    def __init__(self, names: Sequence[str], memory: str, brief: bool, outputs: int = 1) -> None:
        """``names`` name the operands in messages; the last ``outputs`` of them are results.

        ``memory`` is the device that holds the arrays.
        """
        self._names = tuple(names)
        self._memory = memory
        self._outputs = outputs
        self.brief = brief

    def new_args(self) -> A:
        """See :class:`Binder`."""
        made: A = self.args_type(ctypes.sizeof(self.args_type))  # type: ignore[assignment]
        return made

    def names(self) -> Sequence[str]:
        """See :class:`Binder`."""
        return self._names

    def guard(self, operands: Operands) -> Guard | None:
        """See :class:`Binder`."""
        return guard_of(operands, self._outputs)

    def write_notice(self, operands: Operands, bound: bool = False) -> Notice | None:
        """See :class:`Binder`."""
        return write_notice(operands, self._outputs, bound)
