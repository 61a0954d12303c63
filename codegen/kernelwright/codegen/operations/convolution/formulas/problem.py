"""A convolution as time formulas take it, and numbers derived from it."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """Extents along D, H and W; leading ones are 1 for problems with fewer dimensions."""

    backward_data: bool
    backward_weight: bool
    split: float  # slices of the sum of backward weight, at least 1
    size: float  # bytes of an element of x, w and y
    n: float  # images
    c: float  # channels of x, of all groups
    k: float  # channels of y, of all groups
    groups: float
    in_d: float
    in_h: float
    in_w: float
    out_d: float
    out_h: float
    out_w: float
    filter_d: float
    filter_h: float
    filter_w: float
    stride_d: float
    stride_h: float
    stride_w: float
    dilation_w: float
    residual: bool
    fold_pitch: float  # channels per point of the folded image that Hopper's kernels read; 0 where they fold nothing


class Gemm(NamedTuple):
    """The implicit GEMM of a group; backward data excludes the points that a stride leaves out."""

    m: float
    n: float
    k: float


def filter_points(p: Problem) -> float:
    """Filter points over all dimensions."""
    return p.filter_d * p.filter_h * p.filter_w


def in_points(p: Problem) -> float:
    """Input points of one image."""
    return p.in_d * p.in_h * p.in_w


def out_points(p: Problem) -> float:
    """Output points of one image."""
    return p.out_d * p.out_h * p.out_w


def strides(p: Problem) -> float:
    """Product of the strides."""
    return p.stride_d * p.stride_h * p.stride_w


def gemm(p: Problem) -> Gemm:
    """The implicit GEMM."""
    c = p.c / p.groups
    k = p.k / p.groups
    outputs = p.n * out_points(p)
    if p.backward_data:
        return Gemm(outputs, c, k * filter_points(p))
    if p.backward_weight:
        return Gemm(k, c * filter_points(p), outputs)
    return Gemm(outputs, k, c * filter_points(p))


def work(p: Problem) -> float:
    """Multiplications."""
    g = gemm(p)
    return p.groups * g.m * g.n * g.k


def moved_bytes(p: Problem) -> float:
    """Bytes that a kernel moves if it reads each tensor once: x, w, y, a residual, and slices of w's gradient twice."""
    x = p.n * p.c * in_points(p)
    w = p.k * (p.c / p.groups) * filter_points(p)
    y = p.n * p.k * out_points(p)
    slices = 8 * p.split * w if p.split > 1 else 0.0
    return (x + w + y * (2.0 if p.residual else 1.0)) * p.size + slices
