"""Converts specs, problems and architectures to the arguments of the time formulas."""

from __future__ import annotations

import math

from kernelwright.arch import Arch
from kernelwright.codegen.formulas import cdna
from kernelwright.codegen.formulas.devices import device_of
from kernelwright.codegen.formulas.machine import Estimate
from kernelwright.codegen.formulas.products import Problem
from kernelwright.codegen.operations.gemm.formulas import hopper, processors, tiles
from kernelwright.codegen.operations.gemm.spec import Activation, GemmSpec, Pipeline, StreamK
from kernelwright.problems.gemm.problem import GemmProblem


def estimate(spec: GemmSpec, problem: GemmProblem, arch: Arch, split: int, units: int) -> Estimate:
    """Return the time of a launch with ``split`` slices of k on ``units`` cores or compute units.

    CPU dot products are assumed to be fast.
    """
    device = device_of(arch, problem.types[0], units)
    if arch.time_model == "hopper":
        return hopper.estimate(_hopper_problem(problem, split), _hopper_kernel(spec), device, math.inf)
    if arch.time_model == "processors":
        return processors.estimate(_processor_problem(spec, problem, split), _processor_kernel(spec), device)
    if arch.time_model in ("cdna3", "cdna4"):
        kernel = cdna_kernel(spec, arch.time_model == "cdna4")
        return cdna.estimate(tiles_problem(problem, split), kernel, device, math.inf)
    return tiles.estimate(tiles_problem(problem, split), _tiles_kernel(spec), device, math.inf)


def _hopper_problem(problem: GemmProblem, split: int) -> hopper.Problem:
    size, _, size_c = problem.sizes
    results = 1 + (problem.beta != 0) + problem.num_d
    return hopper.Problem(problem.m, problem.n, problem.k, max(1, problem.batch), split, size, size_c, results)


def _hopper_kernel(spec: GemmSpec) -> hopper.Kernel:
    tile, warp, cluster = spec.tile, spec.warp_tile, spec.cluster
    pingpong = spec.wave.m == 1 and spec.wave.n == 1
    stream = spec.stream_k is not StreamK.NONE
    return hopper.Kernel(
        tile.m, tile.n, tile.k, warp.m, warp.n, cluster.m, cluster.n, pingpong, stream, spec.split_k,
        spec.activation is Activation.ANY, spec.pipeline is Pipeline.CP_ASYNC,
    )  # fmt: skip


def _processor_problem(spec: GemmSpec, problem: GemmProblem, split: int) -> processors.Problem:
    fp32 = problem.types[2] == "fp32"
    return processors.Problem(
        problem.m, problem.n, problem.k, problem.batch, split, problem.sizes[0], fp32, spec.preshuffle
    )


def _processor_kernel(spec: GemmSpec) -> processors.Kernel:
    warp, tile = spec.warp_tile, spec.tile
    stream = spec.stream_k is not StreamK.NONE
    return processors.Kernel(
        warp.m, warp.n, warp.k, tile.m, tile.n, tile.k, False, spec.dtype_a == "fp32", stream,
        spec.persistent,
        spec.activation is Activation.ANY,
    )  # fmt: skip


def tiles_problem(problem: GemmProblem, split: int) -> Problem:
    """The problem as the formulas of AMD GPUs read it."""
    read_a = 1 if problem.stride_a == 0 else problem.batch
    read_b = 1 if problem.stride_b == 0 else problem.batch
    elements = sum(problem.d_elements)
    return Problem(
        problem.m,
        problem.n,
        problem.k,
        problem.batch,
        split,
        *problem.sizes,
        read_a,
        read_b,
        problem.beta != 0,
        elements,
    )


def _tiles_kernel(spec: GemmSpec) -> tiles.Kernel:
    """The kernel: on AMD GPUs a second kernel adds up the partial sums of k that workgroups leave."""
    stream = spec.stream_k is not StreamK.NONE
    return tiles.Kernel(spec.tile.m, spec.tile.n, spec.tile.k, stream, spec.split_k or stream)


def cdna_kernel(spec: GemmSpec, newer: bool) -> cdna.Kernel:
    """The kernel as the formulas of CDNA3 and CDNA4 read it."""
    stream = spec.stream_k is not StreamK.NONE
    tile, wave = spec.tile, spec.wave
    twice = spec.split_k or stream
    return cdna.Kernel(tile.m, tile.n, tile.k, wave.m, wave.n, wave.k, spec.preshuffle, stream, twice, newer)
