"""What an operation is to the tile engine: all that it measures, poses, enumerates and learns."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from kernelwright.dispatch import OperationPlan

Record = Mapping[str, Any]
"""A problem as JSON values; the keys are columns of the table of results."""


Axes = Mapping[str, Sequence[Any]]
"""Values by attribute of a kernel."""


@dataclass(frozen=True)
class ProblemSets:
    """The problem sets of an operation.

    :ivar keys: their names; ``records`` gives the records of one, which may repeat.
    """

    keys: tuple[str, ...] = ()
    records: Callable[[str], Iterable[Record]] = lambda key: ()


@dataclass(frozen=True)
class Words:
    """What configurations of the CK Tile engine call an operation's kernels, attributes and their values.

    :ivar variants: words that ``variant`` may be, and the attributes' values that each stands for.
    :ivar renamed: our names of attributes by theirs.
    :ivar values: our values by theirs, by our name of the attribute.
    :ivar served_by: values by attribute whose kernels serve a value beside those that have it.
    :ivar rewritten: a configuration whose names and values are ours already, without other peculiarities.
    :ivar product_lists: keys of a product's configuration that list a variant's values, by attribute.
    """

    variants: Mapping[str, Axes] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    served_by: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    rewritten: Callable[[dict[str, Any]], dict[str, Any]] = lambda config: config
    product_lists: Mapping[str, str] = field(default_factory=dict)


class Learnable(Protocol):
    """What learned selection asks; the features are ``kernelwright.codegen.heuristics/data/<op>.json``."""

    def inputs(self, record: Record, spec: Mapping[str, Any], value: int) -> Mapping[str, float] | None:
        """The schema's inputs but ``units``, as C computes them from the structs of problem and kernel.

        ``value`` is what is chosen where the problem leaves something open, else 0. None for a problem of which a
        compiled model ranks none, as ``applies`` of the schema says.
        """

    def family(self, record: Record) -> str:
        """The family of models that poses the problem; families are held out as a whole."""


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
    """An operation. A class that derives from this one has no problem sets, words or learning unless it says so."""

    name: str
    columns: Sequence[str]
    """Names of a record's values, in the order of the table."""
    problem_sets: ProblemSets = ProblemSets()
    words: Words = Words()
    learning: Learnable | None = None
    """None if selection is not learned."""

    def read(self, record: Record) -> Record:
        """A record with every column. ValueError names what is missing, unknown or illegal."""

    def problem(self, record: Record) -> Any:
        """The problem that a dispatcher plans."""

    def record_of(self, problem: object) -> Record | None:
        """The record that poses a problem, or one on which kernels take as long; None where there is no such record."""

    def origin(self, record: Record) -> tuple[str, str]:
        """The public model that has a layer of a record's extents, and the layer; the first of several, "" for none."""
        return "", ""

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


OPERATIONS: dict[str, Measurable] = {}
"""The operations by name, once :mod:`kernelwright.tile_engine.registry` is imported."""


def register(operation: Measurable) -> None:
    """Make an operation known to the tile engine; ValueError where its name is taken by another."""
    if OPERATIONS.setdefault(operation.name, operation) is not operation:
        raise ValueError(f"an operation named {operation.name!r} is measured already; choose another name")
