"""The tile engine's interface to an operation: measuring, recording, enumerating and learning."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from kernelwright.dispatch import OperationPlan

Record = Mapping[str, Any]
"""A problem as JSON values; the keys are columns of the table of results."""


Axes = Mapping[str, Sequence[Any]]
"""Values by kernel attribute."""


@dataclass(frozen=True)
class ProblemSets:
    """The problem sets of an operation.

    :ivar keys: their names; ``records`` returns the records of one set, which may repeat.
    """

    keys: tuple[str, ...] = ()
    records: Callable[[str], Iterable[Record]] = lambda key: ()


@dataclass(frozen=True)
class Words:
    """Names of an operation's kernels, attributes and values in configurations of the CK Tile engine.

    :ivar variants: legal words of ``variant``, and the attribute values that each stands for.
    :ivar renamed: our attribute names by theirs.
    :ivar values: our values by theirs, by our attribute name.
    :ivar served_by: by attribute and value, another value whose kernels serve it too.
    :ivar rewritten: removes other peculiarities from a configuration that already has our names and values.
    :ivar product_lists: keys of a product's configuration that list a variant's values, by attribute.
    """

    variants: Mapping[str, Axes] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    served_by: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    rewritten: Callable[[dict[str, Any]], dict[str, Any]] = lambda config: config
    product_lists: Mapping[str, str] = field(default_factory=dict)


class Learnable(Protocol):
    """Inputs of learned selection; the features are in ``kernelwright.codegen.heuristics/data/<op>.json``."""

    def inputs(self, record: Record, spec: Mapping[str, Any], value: int) -> Mapping[str, float] | None:
        """The schema's inputs except ``units``, as C computes them from the structs of problem and kernel.

        ``value`` is the value of what the problem leaves open, else 0. None for a problem that compiled models do not
        rank, according to the schema's ``applies``.
        """

    def family(self, record: Record) -> str:
        """The model family of the problem; families are held out as a whole."""


class Operands(Protocol):
    """One set of arrays. ``outs`` holds everything that a launch writes."""

    @property
    def inputs(self) -> Sequence[np.ndarray[Any, Any]]:
        """Arrays that a launch reads."""

    @property
    def outs(self) -> Sequence[np.ndarray[Any, Any]]:
        """Arrays that a launch writes."""

    def poison(self) -> None:
        """Fill outputs with a value that no result has, so that an element left unwritten counts as an error."""

    def error(self) -> float:
        """The largest error of an element of ``outs`` as a fraction of its bound; infinite for an unwritten element."""


class Measurable(Protocol):
    """An operation. Derived classes have no problem sets, words or learning unless they say so."""

    name: str
    columns: Sequence[str]
    """Names of a record's values, in table order."""
    problem_sets: ProblemSets = ProblemSets()
    words: Words = Words()
    learning: Learnable | None = None
    """None if selection is not learned."""

    def read(self, record: Record) -> Record:
        """A record with every column. ValueError names a missing, unknown or illegal one."""

    def problem(self, record: Record) -> Any:
        """The problem for a dispatcher to plan."""

    def record_of(self, problem: object) -> Record | None:
        """The record of a problem, or one on which kernels take as long; None if there is none."""

    def origin(self, record: Record) -> tuple[str, str]:
        """The public model with a layer of a record's extents, and the layer; the first of several, "" for none."""
        return "", ""

    def with_value(self, problem: Any, value: int) -> Any:
        """The problem with a ``value`` above 0 for what it leaves open; the problem itself if nothing is open."""

    def operands(self, record: Record, seed: int) -> Operands:
        """Operands of small integers, the same for equal seeds."""

    def bind(self, plan: OperationPlan[Any], operands: Operands) -> Callable[[], object]:
        """Bind a launch to the arrays of this process."""

    def bind_addresses(
        self, plan: OperationPlan[Any], inputs: Sequence[int], outs: Sequence[int], stream: int, workspace: int
    ) -> Callable[[], object]:
        """Bind a launch to the same arrays at GPU addresses, in the order of ``inputs`` and ``outs``."""

    def auxiliary(self, spec: Mapping[str, Any]) -> bool:
        """Whether kernels of a spec only prepare or finish the work of other kernels, as separate stages."""

    def flops(self, record: Record) -> int:
        """Multiplications and additions of the problem."""

    def bytes_moved(self, record: Record) -> int:
        """Bytes of operands, each read or written at least once."""


OPERATIONS: dict[str, Measurable] = {}
"""The operations by name, once :mod:`kernelwright.tile_engine.registry` is imported."""


def register(operation: Measurable) -> None:
    """Register an operation with the tile engine. Raises ValueError if its name is taken by another."""
    if OPERATIONS.setdefault(operation.name, operation) is not operation:
        raise ValueError(f"an operation named {operation.name!r} is measured already; choose another name")
