"""Whether a convolution kernel serves a problem: the rules of its backend, on what the C ABI will say of both."""

from __future__ import annotations

import functools

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.operations.convolution.rules import checks, cuda, hip
from kernelwright.codegen.operations.convolution.rules.structs import Problem
from kernelwright.codegen.operations.convolution.rules.traits import traits_of
from kernelwright.codegen.operations.convolution.spec import OPS, GroupedConvSpec
from kernelwright.codegen.operations.convolution.time_model.problem import TimedProblem


@functools.lru_cache(maxsize=1 << 10)
def problem_of(problem: TimedProblem, split_k: int) -> Problem:
    """As kernels see it, with so many slices of backward weight."""
    p = problem
    return Problem(
        OPS[p.direction], p.dtype, p.dtype, p.dtype, DType.FP32, p.layout, p.activation, p.bias, p.residual,
        split_k, 0, p.groups, p.n, p.c, p.k, p.size, p.filter, p.stride, p.dilation, p.pad_left, p.pad_right,
        p.stride_x, p.stride_y, p.alpha, p.beta,
    )  # fmt: skip


def refusal(spec: GroupedConvSpec, problem: TimedProblem, arch: Arch) -> Refusal:
    """Why the kernel does not serve the problem, with one slice where the dispatcher is to choose."""
    if spec.direction is not problem.direction:
        return f"this kernel serves {OPS[spec.direction]}"
    t, p = traits_of(spec, arch.backend), problem_of(problem, max(1, problem.split_k))
    if arch.backend == "cutlass":
        return cuda.check(t, p)
    if arch.backend == "cpu":
        return checks.traits_match(t, p)
    block_size = spec.wave.m * spec.wave.n * spec.wave.k * arch.wave_size
    return hip.check(t, p, spec.explicit_gemm, spec.two_stage, block_size)
