"""The interface of an operation that the tile engine measures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kernelwright.dispatch import Dispatcher, OperationPlan

Record = Mapping[str, Any]
"""A problem as JSON values; the keys are columns of the table of results."""


@dataclass(frozen=True)
class Operands:
    """One set of arrays in the order of the plan's launch, of which ``out`` is the last.

    :ivar exact: the result in float64.
    :ivar bound: for each element, how far a correct kernel may be from ``exact``.
    """

    arrays: tuple[Any, ...]
    exact: np.ndarray[Any, Any]
    bound: np.ndarray[Any, Any]

    @property
    def out(self) -> Any:
        """The array that a launch writes."""
        return self.arrays[-1]


class Measurable(Protocol):
    """An operation."""

    name: str
    columns: Sequence[str]
    """Names of a record's values, in the order of the table."""

    def read(self, record: Record) -> Record:
        """A record with every column. ValueError names what is missing, unknown or illegal."""

    def problem(self, record: Record) -> Any:
        """The problem that a dispatcher plans."""

    def operands(self, record: Record, seed: int) -> Operands:
        """Operands of small integers, the same for equal seeds."""

    def bind(self, plan: OperationPlan[Any], operands: Operands) -> Any:
        """A launch without arguments."""

    def serves(self, dispatcher: Dispatcher, record: Record) -> str:
        """Empty if some kernel of the dispatcher serves the problem, else the reason of the refusal."""

    def flops(self, record: Record) -> int:
        """Multiplications and additions of the problem."""

    def bytes_moved(self, record: Record) -> int:
        """Bytes of operands that are read and written at least once."""
