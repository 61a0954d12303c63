"""The operations that the tile engine measures."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.tile_engine.operation import OPERATIONS, Learnable, Measurable

# Importing an operation registers it: to add one, add a word here.
from kernelwright.tile_engine.operations import attention, convolution, gemm, norm  # noqa: F401

__all__ = ["OPERATIONS", "learnable", "measurable", "operation_of_columns"]


def operation_of_columns(table: Sequence[str]) -> Measurable:
    """The operation of a table with these problem columns. Raises ValueError for a table of no operation."""
    for operation in OPERATIONS.values():
        if tuple(table[2 : 2 + len(operation.columns)]) == tuple(operation.columns):
            return operation
    raise ValueError(f"the columns {', '.join(table) or '(none)'} are of no table of `tile-engine bench`")


def measurable(name: str) -> Measurable:
    """Look up an operation by name. Raises ValueError for an unknown name."""
    if name not in OPERATIONS:
        raise ValueError(f"the tile engine does not measure {name!r}; allowed: {', '.join(OPERATIONS)}")
    return OPERATIONS[name]


def learnable(name: str) -> Learnable:
    """The interface of an operation to learned selection. Raises ValueError if its selection is not learned."""
    if name not in OPERATIONS or (learning := OPERATIONS[name].learning) is None:
        learned = [one.name for one in OPERATIONS.values() if one.learning is not None]
        raise ValueError(f"selection of {name!r} is not learned; allowed: {', '.join(learned)}")
    return learning
