"""Specs of grouped convolution: what to compute and how to tile it."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field, StrictBool

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.fields import MAX_EXTENT, Activation, Extent, Padding, StreamK, omitted
from kernelwright.codegen.kernel import Frozen, Kernel, Spec
from kernelwright.problems.convolution.description import DIMS, ConvLayout, ConvOp, Specialization


class Direction(StrEnum):
    """Direction of a convolution. x is the input, w the weights, y the output; dx, dw and dy are their gradients."""

    FORWARD = "forward"  # y from x and w
    BACKWARD_DATA = "backward_data"  # dx from dy and w
    BACKWARD_WEIGHT = "backward_weight"  # dw from dy and x


OPS: Mapping[Direction, ConvOp] = {
    Direction.FORWARD: ConvOp.FORWARD,
    Direction.BACKWARD_DATA: ConvOp.BACKWARD_DATA,
    Direction.BACKWARD_WEIGHT: ConvOp.WEIGHT_SLICES,
}
"""Operations that kernels serve: backward weight is planned in stages, and kernels serve the one that multiplies."""


SPATIAL_DIMS: Mapping[ConvLayout, int] = {ConvLayout(name): dims for name, dims in DIMS.items()}
"""Number of spatial extents by layout."""


class ConvPipeline(StrEnum):
    """How operands travel from memory to the matrix units."""

    COMPV1 = "compv1"
    COMPV2 = "compv2"
    MEM = "mem"
    COMPV3 = "compv3"
    COMPV4 = "compv4"
    COMPV5 = "compv5"
    COMPV6 = "compv6"
    COMP_ASYNC = "comp_async"
    BASIC_ASYNC_V1 = "basic_async_v1"
    WAVELET = "wavelet"  # some waves only load
    TMA = "tma"  # NVIDIA: image points and weights by TMA, a few stages ahead
    PACKED = "packed"  # CPU: both operands of the implicit GEMM packed into cache blocks
    DIRECT = "direct"  # no GEMM: each output is summed in place (depthwise)


class ConvEpilogue(StrEnum):
    """How the accumulators reach memory."""

    CSHUFFLE = "cshuffle"
    DEFAULT = "default"


class ConvScheduler(StrEnum):
    """Who issues what: within a wave, between waves, or how warp groups share work."""

    INTRAWAVE = "intrawave"
    INTERWAVE = "interwave"
    COOPERATIVE = "cooperative"  # NVIDIA: warp groups share a tile
    PINGPONG = "pingpong"  # NVIDIA: each warp group has tiles of its own and stores one while the other multiplies
    DEFAULT = "default"


class Vectors(Frozen):
    """Elements of one memory access to A, B and C of the implicit GEMM."""

    a: int = Field(gt=0, le=MAX_EXTENT, strict=True, description="Elements of A per access.")
    b: int = Field(gt=0, le=MAX_EXTENT, strict=True, description="Elements of B per access.")
    c: int = Field(gt=0, le=MAX_EXTENT, strict=True, description="Elements of C per access.")


class Plane(Frozen):
    """Two extents of a plane; 0 where a kernel does not fix them."""

    h: int = Field(default=0, ge=0, le=MAX_EXTENT, strict=True, description="Extent along H.")
    w: int = Field(default=0, ge=0, le=MAX_EXTENT, strict=True, description="Extent along W.")


_NO_PLANE = Plane()


class GroupedConvSpec(Spec):
    """One kernel of grouped convolution: forward, backward data, backward weight, or depthwise forward.

    The implicit GEMM of each group is A·B summed over K in fp32: forward x·w gives y with K = channels times filter
    points; backward data dy·w gives dx with K = output channels times filter points; backward weight dy·x gives dw with
    K = images times output points. It is tiled tile → wave → warp_tile as a GEMM is.

    A depthwise kernel (one channel in and out per group) is no GEMM: ``image_tile`` outputs of ``images`` images are
    one wave's work. Its ``tile``, ``wave`` and ``warp_tile`` are 1 on GPUs.
    """

    target: ClassVar[str] = "conv_kernel"
    computed: ClassVar[tuple[str, ...]] = ("direction", "dtype", "layout", "bias")
    op: Literal["convolution"] = Field(description="The operation that the kernel computes.")
    direction: Direction = Field(description="What is computed: the output, or the gradient of input or weights.")
    dtype: DType = Field(description="Element type of input, weights and output; sums are fp32.")
    layout: ConvLayout = Field(
        description="Storage order of the input, outermost first; its spatial extents (W, HW or DHW) are those of the"
        " convolution."
    )
    depthwise: StrictBool = Field(
        default=False, description="Whether the kernel serves one channel in and out per group, without a GEMM."
    )
    tile: Extent = Field(
        description="Extents of the tile of the implicit GEMM that one workgroup computes, e.g. `[128, 128, 32]`; on"
        " CPUs the extents of a cache block."
    )
    wave: Extent = Field(description="Number of waves in a workgroup along M, N and K, e.g. `[2, 2, 1]`.")
    warp_tile: Extent = Field(
        description="Extents of one matrix instruction, e.g. `[32, 32, 16]`; on CPUs the extents of the register block."
    )
    pipeline: ConvPipeline = Field(description="How operands travel from memory to the matrix units.")
    epilogue: ConvEpilogue = Field(description="How the accumulators reach memory.")
    scheduler: ConvScheduler = Field(description="How loads and matrix instructions are ordered.")
    vector: Vectors = Field(
        description="Elements of one memory access to A, B and C of the implicit GEMM; a kernel serves channel counts"
        " that are multiples of them. Depthwise: to input, weights and output."
    )
    specialization: Specialization = Field(
        default=Specialization.DEFAULT, description="The problems that the kernel serves."
    )
    pad: Padding = omitted(
        Padding(), "Whether M, N and K of the implicit GEMM may be other than multiples of the tile."
    )
    num_groups_to_merge: int = omitted(1, "Number of groups that one implicit GEMM computes.", gt=0, le=MAX_EXTENT)
    num_wave_groups: int = omitted(1, "Number of wave groups that share the work of a tile.", gt=0, le=MAX_EXTENT)
    double_smem_buffer: StrictBool = omitted(False, "Whether a workgroup keeps two stages of A and B in LDS.")
    split_image: StrictBool = omitted(False, "Whether images larger than 2 GiB are computed in pieces.")
    two_stage: StrictBool = omitted(
        False, "Whether slices of K are summed in fp32 in the workspace, and converted by a second kernel."
    )
    explicit_gemm: StrictBool = omitted(
        False,
        "Whether operands are addressed as matrices: for filters of one point without stride and padding,"
        " and images whose points lie equally far apart.",
    )
    stream_k: StreamK = omitted(
        StreamK.NONE, "Whether workgroups share the K steps of all tiles evenly, and how partial sums are added."
    )
    stream_k_persistent: StrictBool = omitted(
        False, "Whether stream-K's workgroups compute whole tiles first and share the last steps only."
    )
    bias: StrictBool = omitted(False, "Whether the epilogue adds one number per output channel (forward).")
    residual: StrictBool = omitted(
        False, "Whether the epilogue adds a tensor of the output's shape, after the bias (forward)."
    )
    activation: Activation = omitted(
        Activation.NONE, "The last step of the epilogue (forward). `any`: the kernel serves every epilogue."
    )
    image_tile: Plane = omitted(
        _NO_PLANE, "Depthwise on GPUs: outputs of an image that one workgroup computes along H and W."
    )
    filter: Plane = omitted(_NO_PLANE, "Depthwise: extents of the filter that the kernel is built for; 0 for any.")
    stride: Plane = omitted(_NO_PLANE, "Depthwise: strides that the kernel is built for; 0 for any.")
    padding: Plane = omitted(
        _NO_PLANE, "Depthwise: padding on both sides that a kernel with a fixed filter is built for."
    )
    subtile: Plane = omitted(_NO_PLANE, "Depthwise on GPUs: outputs of one lane along H and W.")
    images: int = omitted(1, "Depthwise on GPUs: images that one workgroup computes.", gt=0, le=MAX_EXTENT)

    @property
    def spatial_dims(self) -> int:
        """1, 2 or 3, from the layout."""
        return SPATIAL_DIMS[self.layout]

    @property
    def fused(self) -> bool:
        """Whether the epilogue does more than convert."""
        return self.bias or self.residual or self.activation is not Activation.NONE

    @property
    def variant(self) -> str:
        """One of :data:`VARIANTS`."""
        return f"{self.direction}_depthwise" if self.depthwise else str(self.direction)


VARIANTS = (*map(str, Direction), *(f"{direction}_depthwise" for direction in Direction))
"""Values of :attr:`GroupedConvSpec.variant`."""


def conv_spec(kernel: Kernel) -> GroupedConvSpec:
    """Return the spec of a convolution kernel; TypeError for a kernel of another operation."""
    if not isinstance(kernel.spec, GroupedConvSpec):
        raise TypeError(f"{kernel.name} is a kernel of {kernel.spec.op}, not of convolution")
    return kernel.spec
