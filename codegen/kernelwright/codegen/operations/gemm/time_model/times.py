"""From specs, problems and architectures to what the formulas of times read."""

from __future__ import annotations

import math

from kernelwright.arch import Arch
from kernelwright.codegen.formulas.devices import device_of
from kernelwright.codegen.formulas.machine import Estimate
from kernelwright.codegen.operations.gemm.formulas import hopper, processors, tiles
from kernelwright.codegen.operations.gemm.spec import Activation, GemmSpec, StreamK
from kernelwright.codegen.operations.gemm.time_model.posed import Posed


def estimate(spec: GemmSpec, posed: Posed, arch: Arch, split: int, units: int) -> Estimate:
    """The time of a launch with ``split`` slices of k on ``units`` cores or compute units.

    Dot products of CPUs are taken to be fast.
    """
    device = device_of(arch, posed.types[0], units)
    if arch.time_model == "hopper":
        return hopper.estimate(_hopper_problem(posed, split), _hopper_kernel(spec), device, math.inf)
    if arch.time_model == "processors":
        return processors.estimate(_processor_problem(spec, posed, split), _processor_kernel(spec), device)
    return tiles.estimate(_tiles_problem(posed, split), _tiles_kernel(spec), device, math.inf)


def _hopper_problem(posed: Posed, split: int) -> hopper.Problem:
    size, _, size_c = posed.sizes
    results = 1 + (posed.beta != 0) + posed.num_d
    return hopper.Problem(posed.m, posed.n, posed.k, max(1, posed.batch), split, size, size_c, results)


def _hopper_kernel(spec: GemmSpec) -> hopper.Kernel:
    tile, warp, cluster = spec.tile, spec.warp_tile, spec.cluster
    pingpong = spec.wave.m == 1 and spec.wave.n == 1
    stream = spec.stream_k is not StreamK.NONE
    return hopper.Kernel(
        tile.m, tile.n, tile.k, warp.m, warp.n, cluster.m, cluster.n, pingpong, stream, spec.split_k
    )  # fmt: skip


def _processor_problem(spec: GemmSpec, posed: Posed, split: int) -> processors.Problem:
    fp32 = posed.types[2] == "fp32"
    return processors.Problem(posed.m, posed.n, posed.k, posed.batch, split, posed.sizes[0], fp32, spec.preshuffle)


def _processor_kernel(spec: GemmSpec) -> processors.Kernel:
    warp, tile = spec.warp_tile, spec.tile
    stream = spec.stream_k is not StreamK.NONE
    return processors.Kernel(
        warp.m, warp.n, warp.k, tile.m, tile.n, tile.k, False, spec.dtype_a == "fp32", stream, spec.persistent,
        spec.activation is Activation.ANY,
    )  # fmt: skip


def _tiles_problem(posed: Posed, split: int) -> tiles.Problem:
    read_a = 1 if posed.stride_a == 0 else posed.batch
    read_b = 1 if posed.stride_b == 0 else posed.batch
    elements = sum(posed.d_elements)
    return tiles.Problem(
        posed.m, posed.n, posed.k, posed.batch, split, *posed.sizes, read_a, read_b, posed.beta != 0, elements
    )


def _tiles_kernel(spec: GemmSpec) -> tiles.Kernel:
    """A second kernel adds up what workgroups of AMD GPUs leave of k."""
    stream = spec.stream_k is not StreamK.NONE
    return tiles.Kernel(spec.tile.m, spec.tile.n, spec.tile.k, stream, spec.split_k or stream)
