"""Convolutions that are edge cases: extents near powers of two, and all kinds of filters, strides and groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernelwright.tile_engine.problems.gemm import EDGES

DIRECTIONS = ("forward", "backward_data", "backward_weight")
Fields = dict[str, Any]

_FULL = 64  # channels that fill tiles
_SAME = {"y": 3, "x": 3, "pad_h": 1, "pad_w": 1}
_PLANE = {"n": 1, "c": 32, "k": 32, "hi": 13, "wi": 13}
_SOLID = {"n": 1, "c": 16, "k": 24, "di": 5, "hi": 7, "wi": 6}
# Assumptions that a loop over filter points may make, one at a time, on an image that no power of two fits.
_FILTERS: tuple[Fields, ...] = (
    {"y": 13, "x": 13},  # one output
    {"y": 1, "x": 7, "pad_w": 3},
    {"y": 7, "x": 1, "pad_h": 3},
    {"y": 2, "x": 2, "stride_h": 2, "stride_w": 2},  # the last row and column are never read
    {"y": 1, "x": 1, "stride_h": 3, "stride_w": 2},  # points that no filter reads
    {**_SAME, "stride_h": 2, "stride_w": 1},
    {**_SAME, "stride_h": 5, "stride_w": 5},
    {"y": 3, "x": 3, "dilation_h": 6, "dilation_w": 5, "pad_h": 6, "pad_w": 5},
    {"y": 5, "x": 5, "pad_h": 4, "pad_w": 4},  # more outputs than points
    {"y": 3, "x": 3, "pad_h": 5, "pad_w": 5},  # outputs that read only padding
    {"y": 15, "x": 15, "pad_h": 1, "pad_w": 1},  # as large as the padded image
)
# Numbers of groups, input channels and output channels.
_GROUPS = ((2, 1, 1), (32, 1, 1), (33, 1, 1), (8, 1, 3), (7, 3, 1), (3, 5, 7), (4, 8, 8), (2, 33, 17))
_DEEP: tuple[Fields, ...] = (
    {"z": 1, "y": 1, "x": 1},
    {"z": 3, "y": 3, "x": 3, "pad_d": 1, "pad_h": 1, "pad_w": 1},
    {"z": 5, "y": 7, "x": 6},
    {"z": 3, "y": 1, "x": 2, "stride_d": 2, "stride_h": 3, "stride_w": 1},
    {"z": 2, "y": 3, "x": 2, "dilation_d": 3, "dilation_h": 2, "dilation_w": 4},
    {"z": 3, "y": 3, "x": 3, "pad_d": 1, "pad_h": 1, "pad_w": 1, "g": 8},
)


def conv_edges() -> Iterator[Fields]:
    """Each edge case in every direction, without element type; no problem exceeds 10⁸ operations."""
    for fields in (*_extents(), *_shapes()):
        yield from ({"direction": direction, **fields} for direction in DIRECTIONS)


def _extents() -> Iterator[Fields]:
    """Each edge extent as channels in, channels out, width and images, the rest filling tiles; and with others."""
    for place, edge in enumerate(EDGES):
        other, small = EDGES[(place + 5) % len(EDGES)], EDGES[place % 8]
        yield {"n": 1, "c": edge, "k": _FULL, "hi": 8, "wi": 8, **_SAME}
        yield {"n": 1, "c": _FULL, "k": edge, "hi": 8, "wi": 8, **_SAME}
        yield {"n": 1, "c": 32, "k": 32, "hi": 3, "wi": edge, **_SAME}
        yield {"n": edge, "c": 32, "k": 32, "hi": 2, "wi": 2, "y": 1, "x": 1}
        yield {"n": 2, "c": other, "k": edge, "hi": small, "wi": 3, "y": 1, "x": 1}


def _shapes() -> Iterator[Fields]:
    for fields in _FILTERS:
        yield {**_PLANE, **fields}
    for groups, per_in, per_out in _GROUPS:
        yield {**_PLANE, **_SAME, "g": groups, "c": groups * per_in, "k": groups * per_out}
    for fields in _DEEP:
        yield {**_SOLID, **fields}
