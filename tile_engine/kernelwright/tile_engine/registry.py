"""Every operation that the tile engine measures: one line each."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.tile_engine.operation import Measurable
from kernelwright.tile_engine.operations.attention import Attention
from kernelwright.tile_engine.operations.convolution import Convolution
from kernelwright.tile_engine.operations.gemm import Gemm

OPERATIONS: dict[str, Measurable] = {"gemm": Gemm(), "convolution": Convolution(), "attention": Attention()}


def operation_of_columns(table: Sequence[str]) -> Measurable:
    """The operation whose problems a table with these columns has. ValueError for a table of no operation."""
    for operation in OPERATIONS.values():
        if tuple(table[2 : 2 + len(operation.columns)]) == tuple(operation.columns):
            return operation
    raise ValueError(f"the columns {', '.join(table) or '(none)'} are of no table of `tile-engine bench`")


def measurable(name: str) -> Measurable:
    """The operation by its name. ValueError for another name."""
    if name not in OPERATIONS:
        raise ValueError(f"the tile engine does not measure {name!r}; allowed: {', '.join(OPERATIONS)}")
    return OPERATIONS[name]
