"""What learned selection asks of an operation, and every operation that answers: one line each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from kernelwright.tile_engine.learning.attention import AttentionLearning
from kernelwright.tile_engine.learning.convolution import ConvolutionLearning
from kernelwright.tile_engine.learning.gemm import GemmLearning
from kernelwright.tile_engine.operation import Record


class Learnable(Protocol):
    """An operation whose selection is learned; its features are ``kernelwright.codegen.heuristics/data/<op>.json``."""

    def inputs(self, record: Record, spec: Mapping[str, Any], value: int) -> Mapping[str, float] | None:
        """The schema's inputs but ``units``, as C computes them from the structs of problem and kernel.

        ``value`` is what is chosen where the problem leaves something open, else 0. None for a problem of which a
        compiled model judges none, as the schema's ``judges`` says.
        """

    def family(self, record: Record) -> str:
        """The family of models that poses the problem; families are held out as a whole."""


_LEARNABLE: Mapping[str, Learnable] = {
    "gemm": GemmLearning(),
    "convolution": ConvolutionLearning(),
    "attention": AttentionLearning(),
}


def learnable(op: str) -> Learnable:
    """The operation by its name. ValueError for one whose selection is not learned."""
    if op not in _LEARNABLE:
        raise ValueError(f"selection of {op!r} is not learned; allowed: {', '.join(_LEARNABLE)}")
    return _LEARNABLE[op]


def value_of(choices: str) -> int:
    """The number that was chosen, of a table's ``choices`` such as ``split_k=4``; 0 where nothing was."""
    return int(choices.partition("=")[2].partition(" ")[0] or 0)
