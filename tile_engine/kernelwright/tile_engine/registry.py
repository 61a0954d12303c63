"""Every operation that the tile engine measures: one line each."""

from __future__ import annotations

from kernelwright.tile_engine.operation import Measurable
from kernelwright.tile_engine.operations.attention import Attention
from kernelwright.tile_engine.operations.convolution import Convolution
from kernelwright.tile_engine.operations.gemm import Gemm

OPERATIONS: dict[str, Measurable] = {"gemm": Gemm(), "convolution": Convolution(), "attention": Attention()}


def measurable(name: str) -> Measurable:
    """The operation by its name. ValueError for another name."""
    if name not in OPERATIONS:
        raise ValueError(f"the tile engine does not measure {name!r}; allowed: {', '.join(OPERATIONS)}")
    return OPERATIONS[name]
