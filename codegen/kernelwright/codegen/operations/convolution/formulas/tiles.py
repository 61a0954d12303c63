"""Predicted time of a convolution on AMD GPUs: tile and wave quantisation on a roofline, as for GEMM.

The implicit GEMM m x n x k of each group is cut into tiles; a partial tile costs a whole one, and waves of tiles run
one after another. Backward data with strides multiplies each filter point by the outputs that it meets: k shrinks by
the product of the strides, while m is the points of dx. Groups that a kernel merges widen n and k. A depthwise kernel
multiplies vectors instead. Memory moves x, w and y once, and the slices of backward weight twice in 4 bytes each. The
launch takes the longest of these. It was not fitted to measured convolutions.
"""

from __future__ import annotations

from typing import NamedTuple

from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil
from kernelwright.codegen.operations.convolution.formulas.problem import (
    Gemm,
    Problem,
    gemm,
    in_points,
    moved_bytes,
    strides,
)

FILL_BYTES_PER_CLOCK = 48  # as for GEMM
SECOND_LAUNCH_US = 4  # likewise
SPARE_DIMENSION = (
    1.01  # factor for each dimension of a kernel that the problem lacks: decides between otherwise equal kernels
)


class Kernel(NamedTuple):
    """Traits of a kernel that the time depends on."""

    tile_m: float
    tile_n: float
    tile_k: float
    merged: float  # groups that a tile multiplies at once, at least 1
    spare_dimensions: float
    depthwise: bool
    leaves_slices: bool  # a second kernel adds them up


def multiplied(p: Problem, merged: float) -> Gemm:
    """The GEMM that is cut into tiles."""
    g = gemm(p)
    m = p.n * in_points(p) if p.backward_data else g.m
    k = max(1.0, g.k / strides(p)) if p.backward_data else g.k
    if p.backward_weight:
        return Gemm(m * merged, g.n * merged, k)
    return Gemm(m, g.n * merged, k * merged)


def spare(dimensions: float) -> float:
    """Cost factor of dimensions that a kernel has and the problem lacks."""
    factor = 1.0
    while dimensions > 0:
        factor *= SPARE_DIMENSION
        dimensions -= 1
    return factor


def estimate(p: Problem, t: Kernel, d: Device) -> Estimate:
    """The time of a launch."""
    memory_us = moved_bytes(p) / d.bytes_per_us
    behind_us = SECOND_LAUNCH_US if t.leaves_slices else 0.0
    slower = spare(t.spare_dimensions)
    whole = multiplied(p, 1.0)
    asked = p.groups * whole.m * whole.n * whole.k
    if t.depthwise:
        direct_us = 2 * asked / max(d.rate_fp32, 1.0) / d.units / d.clocks_per_us * slower
        return Estimate(1.0, 1.0, direct_us, 0.0, memory_us, max(direct_us, memory_us) + behind_us)
    g = multiplied(p, t.merged)
    steps = ceil(ceil(g.k / t.tile_k) / p.split)
    tiles = ceil(p.groups / t.merged) * ceil(g.m / t.tile_m) * ceil(g.n / t.tile_n) * p.split
    waves = ceil(tiles / d.units)
    each = 2 * t.tile_m * t.tile_n * t.tile_k / d.rate
    compute_us = waves * steps * each / d.clocks_per_us * slower
    lines = (t.tile_m + t.tile_n) * p.size * t.tile_k
    fill_us = waves * steps * lines / FILL_BYTES_PER_CLOCK / d.clocks_per_us
    padded = tiles * steps * t.tile_m * t.tile_n * t.tile_k
    useful = asked / padded if padded > asked else 1.0
    return Estimate(
        tiles, waves, compute_us, fill_us, memory_us, max(compute_us, fill_us, memory_us) + behind_us, useful
    )
