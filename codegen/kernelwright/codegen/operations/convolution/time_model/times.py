"""From specs, problems and architectures to what the formulas of times read."""

from __future__ import annotations

from kernelwright.arch import Arch
from kernelwright.codegen.fields import Activation
from kernelwright.codegen.formulas.devices import device_of
from kernelwright.codegen.formulas.machine import Estimate
from kernelwright.codegen.operations.convolution.formulas import hopper, processors, tiles
from kernelwright.codegen.operations.convolution.formulas.problem import Problem
from kernelwright.codegen.operations.convolution.rules.folding import pitch
from kernelwright.codegen.operations.convolution.spec import SPATIAL_DIMS, Direction, GroupedConvSpec
from kernelwright.codegen.operations.convolution.time_model.problem import TimedProblem
from kernelwright.codegen.operations.convolution.time_model.serves import problem_of as rules_problem


def estimate(spec: GroupedConvSpec, problem: TimedProblem, arch: Arch, split: int, units: int) -> Estimate:
    """The time of a launch with ``split`` slices of the sum on ``units`` cores or compute units.

    Dot products of CPUs are taken to be fast; no kernel leaves slices for a second launch.
    """
    device, p = device_of(arch, problem.dtype, units), problem_of(problem, split)
    tile, warp = spec.tile, spec.warp_tile
    if arch.time_model == "hopper":
        return hopper.estimate(p, hopper.Kernel(tile.m, tile.n, spec.wave.m, spec.depthwise), device)
    spare = max(0, SPATIAL_DIMS[spec.layout] - SPATIAL_DIMS[problem.layout])
    if arch.time_model == "processors":
        any_epilogue = spec.activation is Activation.ANY
        block = processors.Kernel(warp.m, warp.n, warp.k, tile.m, tile.n, spare, spec.depthwise, False, any_epilogue)
        return processors.estimate(p, block, device)
    merged = max(1, spec.num_groups_to_merge)
    return tiles.estimate(p, tiles.Kernel(tile.m, tile.n, tile.k, merged, spare, spec.depthwise, False), device)


def problem_of(problem: TimedProblem, split: int) -> Problem:
    """As formulas read it."""
    weight = problem.direction is Direction.BACKWARD_WEIGHT
    return Problem(
        problem.direction is Direction.BACKWARD_DATA, weight, max(1, split) if weight else 1, problem.element_bytes,
        problem.n, problem.c, problem.k, problem.groups, *problem.size, *problem.out, *problem.filter, *problem.stride,
        problem.dilation[2], problem.residual, pitch(rules_problem(problem, split)),
    )  # fmt: skip
