"""K slice counts worth estimating, as the dispatcher's split_k.cpp lists them."""

from __future__ import annotations

import math

from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.operations.gemm.time_model.serves import MAX_SPLIT_K
from kernelwright.problems.gemm.problem import GemmProblem

_CHOICES, _WAVES = 24, 4


def slices(spec: GemmSpec, problem: GemmProblem, backend: str, units: int) -> list[int]:
    """Return slice counts in ascending order; 1 alone for a kernel that does not split K."""
    if problem.split_k != 0:
        return [problem.split_k]
    limit = min(max(1, math.ceil(problem.k / spec.tile.k)), MAX_SPLIT_K[backend] if spec.split_k else 1)
    counts = {1}
    tiles = math.ceil(problem.m / spec.tile.m) * math.ceil(problem.n / spec.tile.n) * problem.batch
    for wave in range(1, _WAVES + 1):
        if limit > 1 and tiles and units * wave >= tiles:
            counts.add(min(limit, units * wave // tiles))
    power = 2
    while power <= limit and len(counts) < _CHOICES - _WAVES:
        counts |= {power, *([power + power // 2] if power + power // 2 <= limit else [])}
        power *= 2
    return sorted(counts | {limit})
