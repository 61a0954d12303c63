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
from kernelwright.codegen.operations.convolution.time_model.posed import Posed
from kernelwright.codegen.operations.convolution.time_model.serves import problem_of as rules_problem


def estimate(spec: GroupedConvSpec, posed: Posed, arch: Arch, split: int, units: int) -> Estimate:
    """The time of a launch with ``split`` slices of the sum on ``units`` cores or compute units.

    Dot products of CPUs are taken to be fast; no kernel leaves slices for a second launch.
    """
    device, problem = device_of(arch, posed.dtype, units), problem_of(posed, split)
    tile, warp = spec.tile, spec.warp_tile
    if arch.time_model == "hopper":
        return hopper.estimate(problem, hopper.Kernel(tile.m, tile.n, spec.wave.m, spec.depthwise), device)
    spare = max(0, SPATIAL_DIMS[spec.layout] - SPATIAL_DIMS[posed.layout])
    if arch.time_model == "processors":
        any_epilogue = spec.activation is Activation.ANY
        block = processors.Kernel(warp.m, warp.n, warp.k, tile.m, tile.n, spare, spec.depthwise, False, any_epilogue)
        return processors.estimate(problem, block, device)
    merged = max(1, spec.num_groups_to_merge)
    return tiles.estimate(problem, tiles.Kernel(tile.m, tile.n, tile.k, merged, spare, spec.depthwise, False), device)


def problem_of(posed: Posed, split: int) -> Problem:
    """As formulas read it."""
    weight = posed.direction is Direction.BACKWARD_WEIGHT
    return Problem(
        posed.direction is Direction.BACKWARD_DATA, weight, max(1, split) if weight else 1, posed.element_bytes,
        posed.n, posed.c, posed.k, posed.groups, *posed.size, *posed.out, *posed.filter, *posed.stride,
        posed.dilation[2], posed.residual, pitch(rules_problem(posed, split)),
    )  # fmt: skip
