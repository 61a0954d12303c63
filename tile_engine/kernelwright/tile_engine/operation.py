"""The interface of an operation that the tile engine measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from kernelwright.dispatch import OperationPlan

Record = Mapping[str, Any]
"""A problem as JSON values; the keys are columns of the table of results."""


class Operands(Protocol):
    """One set of arrays. What a launch reads and writes stands in ``outs`` alone."""

    @property
    def inputs(self) -> Sequence[np.ndarray[Any, Any]]:
        """What a launch reads."""

    @property
    def outs(self) -> Sequence[np.ndarray[Any, Any]]:
        """What a launch writes."""

    def poison(self) -> None:
        """Fill what is to be written with what no result is, so that an element that is left out counts as an error."""

    def error(self) -> float:
        """The largest error of an element of ``outs`` as a share of its bound; infinite for one that was left out."""


class Measurable(Protocol):
    """An operation."""

    name: str
    columns: Sequence[str]
    """Names of a record's values, in the order of the table."""

    def read(self, record: Record) -> Record:
        """A record with every column. ValueError names what is missing, unknown or illegal."""

    def problem(self, record: Record) -> Any:
        """The problem that a dispatcher plans."""

    def posed(self, problem: object) -> Record | None:
        """The record that poses a problem, or one on which kernels take as long; None where there is no such record."""

    def with_value(self, problem: Any, value: int) -> Any:
        """The problem with a value, above 0, of what it leaves open; the problem itself where nothing is."""

    def operands(self, record: Record, seed: int) -> Operands:
        """Operands of small integers, the same for equal seeds."""

    def bind(self, plan: OperationPlan[Any], operands: Operands) -> Callable[[], object]:
        """A launch with the arrays of this process."""

    def bind_addresses(
        self, plan: OperationPlan[Any], inputs: Sequence[int], outs: Sequence[int], stream: int, workspace: int
    ) -> Callable[[], object]:
        """A launch with the same arrays at addresses of a GPU, in the order of ``inputs`` and ``outs``."""

    def auxiliary(self, spec: Mapping[str, Any]) -> bool:
        """Whether kernels of a spec only prepare or finish what other kernels compute, as stages of their own."""

    def flops(self, record: Record) -> int:
        """Multiplications and additions of the problem."""

    def bytes_moved(self, record: Record) -> int:
        """Bytes of operands that are read and written at least once."""
