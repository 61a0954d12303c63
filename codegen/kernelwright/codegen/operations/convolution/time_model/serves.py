"""Whether a convolution kernel serves a problem: the rules of its backend, on the C ABI's form of both."""

from __future__ import annotations

import functools

from kernelwright.arch import Arch
from kernelwright.codegen.c_names import record_of
from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.operations.convolution.rules import checks, cuda, hip
from kernelwright.codegen.operations.convolution.rules.structs import Problem
from kernelwright.codegen.operations.convolution.rules.traits import traits_of
from kernelwright.codegen.operations.convolution.spec import OPS, Direction, GroupedConvSpec
from kernelwright.problems.convolution.problem import ConvProblem


@functools.lru_cache(maxsize=1 << 10)
def problem_of(problem: ConvProblem, split_k: int) -> Problem:
    """The problem as kernels see it, with ``split_k`` slices of backward weight."""
    chosen = {"op": OPS[Direction(problem.direction)], "split_k": split_k, "leaves_slices": 0}
    return record_of(Problem, problem.in_c() | chosen)


def refusal(spec: GroupedConvSpec, problem: ConvProblem, arch: Arch) -> Refusal:
    """Return why the kernel does not serve the problem, with one slice where the dispatcher chooses."""
    if spec.direction != problem.direction:
        return f"this kernel serves {OPS[spec.direction]}"
    t, p = traits_of(spec, arch.backend), problem_of(problem, max(1, problem.split_k or 0))
    if arch.backend == "cutlass":
        return cuda.check(t, p)
    if arch.backend == "cpu":
        return checks.traits_match(t, p)
    block_size = spec.wave.m * spec.wave.n * spec.wave.k * arch.wave_size
    return hip.check(t, p, spec.explicit_gemm, spec.two_stage, block_size)
