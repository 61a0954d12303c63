"""Converts specs, problems and architectures to the arguments of the time formulas."""

from __future__ import annotations

import math
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.formulas.cdna import Kernel
from kernelwright.codegen.formulas.devices import device_of
from kernelwright.codegen.formulas.machine import Estimate
from kernelwright.codegen.operations.convolution.formulas import cdna, hopper, processors, tiles
from kernelwright.codegen.operations.convolution.formulas.problem import Problem
from kernelwright.codegen.operations.convolution.rules.folding import pitch
from kernelwright.codegen.operations.convolution.spec import SPATIAL_DIMS, Direction, GroupedConvSpec
from kernelwright.codegen.operations.convolution.time_model.serves import problem_of as rules_problem
from kernelwright.problems.convolution.description import DIMS
from kernelwright.problems.convolution.problem import ConvProblem


def estimate(spec: GroupedConvSpec, problem: ConvProblem, arch: Arch, split: int, units: int) -> Estimate:
    """Return the time of a launch with ``split`` slices of the sum on ``units`` cores or compute units.

    CPU dot products are assumed to be fast; no kernel leaves slices for a second launch.
    """
    device, p = device_of(arch, problem.dtype, units), problem_of(problem, split)
    tile, warp = spec.tile, spec.warp_tile
    if arch.time_model == "hopper":
        return hopper.estimate(p, hopper.Kernel(tile.m, tile.n, spec.wave.m, spec.depthwise), device)
    spare = max(0, SPATIAL_DIMS[spec.layout] - DIMS[problem.layout])
    if arch.time_model == "processors":
        any_epilogue = spec.activation is Activation.ANY
        block = processors.Kernel(warp.m, warp.n, warp.k, tile.m, tile.n, spare, spec.depthwise, False, any_epilogue)
        return processors.estimate(p, block, device)
    merged = max(1, spec.num_groups_to_merge)
    if arch.time_model in ("cdna3", "cdna4") and not spec.depthwise:
        newer, wave = arch.time_model == "cdna4", spec.wave
        kernel = Kernel(tile.m, tile.n, tile.k, wave.m, wave.n, wave.k, False, False, False, newer)
        return cdna.estimate(p, kernel, merged, spare, device, math.inf)
    return tiles.estimate(p, tiles.Kernel(tile.m, tile.n, tile.k, merged, spare, spec.depthwise, False), device)


def problem_of(problem: ConvProblem, split: int) -> Problem:
    """The problem as formulas read it."""
    weight, p = problem.direction == Direction.BACKWARD_WEIGHT, rules_problem(problem, split)
    out = (1,) * (len(p.extent) - len(problem.out_size)) + problem.out_size
    along: tuple[Any, ...] = (*p.extent, *out, *p.filter, *p.stride)
    return Problem(  # type: ignore[call-arg]  # mypy does not count `along`
        problem.direction == Direction.BACKWARD_DATA, weight, max(1, split) if weight else 1, problem.itemsize,
        p.n, p.c, p.k, p.groups, *along, p.dilation[2], problem.residual, pitch(p),
    )  # fmt: skip
