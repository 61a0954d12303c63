"""Predicted time of a convolution on CDNA3 and CDNA4: that of its implicit GEMM, with the constants of GEMM.

Each step also takes the vector instructions that compute the addresses of its points. Groups that a kernel merges,
strides of backward data and the slices of backward weight are as in ``tiles``, and so are depthwise kernels, whose
times are bounds. ``docs/benchmarks.md`` says how near choices came to the fastest kernels that AMD published; we
measured none.
"""

from __future__ import annotations

from kernelwright.codegen.formulas.cdna import Implicit, Kernel, implicit
from kernelwright.codegen.formulas.machine import Device, Estimate
from kernelwright.codegen.formulas.numbers import ceil
from kernelwright.codegen.operations.convolution.formulas.problem import Problem, in_points, moved_bytes
from kernelwright.codegen.operations.convolution.formulas.tiles import multiplied, spare


def estimate(p: Problem, t: Kernel, merged: float, spare_dimensions: float, d: Device, most_us: float) -> Estimate:
    """The time of a launch that multiplies ``merged`` groups at once; problems lack ``spare_dimensions``."""
    g = multiplied(p, merged)
    groups = ceil(p.groups / merged)
    moved = moved_bytes(p)
    pixels = p.n * p.c * in_points(p)  # backward data reads dy, which has as many channels as its k
    elements = g.m * g.k * groups
    shared = min(1.0, pixels / elements) if elements > 0 and not p.backward_data and not p.backward_weight else 1.0
    e = implicit(Implicit(g.m, g.n, g.k, groups, p.split, p.size, moved, shared), t, d, most_us)
    slower = spare(spare_dimensions)
    return Estimate(e.tiles, e.waves, e.compute_us, e.fill_us, e.memory_us, e.total_us * slower, e.useful)
