"""The operations whose coverage is computed: one line each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from kernelwright.tile_engine.coverage.attention import attention_layers
from kernelwright.tile_engine.coverage.convolution import conv_problems
from kernelwright.tile_engine.coverage.layer_problem import LayerProblem
from kernelwright.tile_engine.coverage.linear import linear_problems

PROBLEMS: Mapping[str, Callable[[str], Iterator[LayerProblem]]] = {
    "gemm": linear_problems,
    "convolution": conv_problems,
    "attention": attention_layers,
}
"""Functions from an element type to problems, by the operation's name in specs."""
