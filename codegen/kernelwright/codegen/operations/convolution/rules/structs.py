"""What rules read of the C ABI's structs."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.codegen.c_names import c_struct
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import Activation, StreamK
from kernelwright.problems.convolution.description import ConvLayout, ConvOp, Specialization

Extents = tuple[int, ...]

_HEADER = "kernelwright/convolution.h"


@c_struct("kw_conv_problem", _HEADER, op="base.op")
@dataclass(frozen=True)
class Problem:
    """kw_conv_problem: extents along D, H and W; strides of images, channels, and along D, H and W."""

    op: ConvOp
    dtype_x: DType
    dtype_w: DType
    dtype_y: DType
    dtype_acc: DType
    layout: ConvLayout
    activation: Activation
    bias: bool
    residual: bool
    split_k: int
    leaves_slices: int
    groups: int
    n: int
    c: int
    k: int
    extent: Extents
    filter: Extents
    stride: Extents
    dilation: Extents
    pad_left: Extents
    pad_right: Extents
    stride_x: Extents
    stride_y: Extents
    alpha: float
    beta: float


@c_struct("kw_conv_traits", _HEADER)
@dataclass(frozen=True)
class Traits:
    """kw_conv_traits."""

    dtype_x: DType
    dtype_w: DType
    dtype_y: DType
    dtype_acc: DType
    layout: ConvLayout
    tile_m: int
    tile_n: int
    tile_k: int
    wave_m: int
    wave_n: int
    wave_k: int
    warp_tile_m: int
    warp_tile_n: int
    warp_tile_k: int
    pad_m: int
    pad_n: int
    pad_k: int
    vector_a: int
    vector_b: int
    vector_c: int
    specialization: Specialization = Specialization.DEFAULT
    depthwise: bool = False
    filter: Extents = (0, 0)
    stride: Extents = (0, 0)
    padding: Extents = (0, 0)
    num_groups_to_merge: int = 1
    max_split_k: int = 1
    slices: int = 0
    stream_k: StreamK = StreamK.NONE
    bias: bool = False
    residual: bool = False
    activation: Activation = Activation.NONE
