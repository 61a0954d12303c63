"""Slice counts of backward weight worth estimating, as the dispatcher's operation.cpp lists them."""

from __future__ import annotations

from kernelwright.codegen.operations.convolution.rules.traits import traits_of
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec
from kernelwright.problems.convolution.problem import ConvProblem

_CHOICES = 24  # kMaxChoices in operation.hpp


def slices(spec: GroupedConvSpec, problem: ConvProblem, backend: str) -> list[int]:
    """Return slice counts in ascending order; none if the kernel cannot sum in as many as the problem asks for."""
    most = traits_of(spec, backend).max_split_k
    if problem.split_k:
        return [problem.split_k] if problem.split_k <= most else []
    limit = min(max(1, problem.gemm[2] // spec.tile.k), most)
    counts: list[int] = []
    power = 1
    while power <= limit and len(counts) + 1 < _CHOICES:
        counts += [power, *([power + power // 2] if 1 < power <= limit - power // 2 else [])]
        power *= 2
    return counts
