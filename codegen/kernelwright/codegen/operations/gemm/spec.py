"""GEMM specs: what to compute and how to tile it."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property
from typing import ClassVar, Literal

from pydantic import Field, StrictBool

from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.fields import MAX_EXTENT, Activation, Extent, Padding, StreamK, omitted
from kernelwright.codegen.kernel import Kernel, Spec
from kernelwright.problems.gemm.description import MAX_D, DOp
from kernelwright.problems.shared import RESULT

__all__ = [
    "MAX_D_TENSORS",
    "MAX_EXTENT",
    "VARIANTS",
    "Activation",
    "DOp",
    "Epilogue",
    "Extent",
    "GemmSpec",
    "Padding",
    "Pipeline",
    "Scheduler",
    "StreamK",
    "default_acc_dtype",
    "default_output_dtype",
    "gemm_spec",
]


def default_acc_dtype(dtype_a: DType) -> DType:
    """Return the default accumulator type for operands of a type: int32 for integers, else fp32."""
    return DType.INT32 if dtype_a in (DType.INT8, DType.INT32) else DType.FP32


def default_output_dtype(dtype_a: DType) -> DType:
    """Return the default type of C for an A of a type: fp16 for 8-bit floats, int32 for int8, else A's."""
    return DType(RESULT.get(dtype_a, dtype_a))


class Pipeline(StrEnum):
    """How operands travel from memory to the matrix units."""

    MEM = "mem"
    COMPV3 = "compv3"
    COMPV4 = "compv4"
    COMPV6 = "compv6"
    COMP_ASYNC = "comp_async"
    PRESHUFFLEV2 = "preshufflev2"
    NARROW = "narrow"  # AMD: compv3 with element-wise loads, for rows of any length and alignment
    TMA = "tma"  # NVIDIA: bulk tensor copies, warp specialised
    CP_ASYNC = "cp_async"  # NVIDIA: copies by threads, for rows at any address
    PACKED = "packed"  # CPU: both operands packed into cache blocks


class Epilogue(StrEnum):
    """How the accumulators reach memory."""

    CSHUFFLE = "cshuffle"
    DEFAULT = "default"
    TMA = "tma"


class Scheduler(StrEnum):
    """Who issues what: within a wave, between waves, or between warp groups."""

    INTRAWAVE = "intrawave"
    INTERWAVE = "interwave"
    DEFAULT = "default"
    COOPERATIVE = "cooperative"  # NVIDIA: consumer warp groups share one tile
    PINGPONG = "pingpong"  # NVIDIA: consumer warp groups alternate tiles


MAX_D_TENSORS = MAX_D.value


class GemmSpec(Spec):
    """One GEMM kernel: C = A·B, or act(A·B op D0 op D1 …), tiled tile → wave → warp_tile.

    ``wave`` counts waves (on NVIDIA warp groups, or warps where they multiply by themselves; 1 on CPU) along each
    extent of a tile; ``warp_tile`` is the extent of one matrix instruction (of the register block on CPU). With
    ``split_k`` the workgroups of a tile share K: each sums a slice into the workspace, and a second kernel adds the
    slices up in order, scales and converts. With ``stream_k`` they share all tiles' steps along K evenly, whatever the
    number of tiles.

    ``num_d`` tensors of C's dtype and order are combined with the result by ``d_op`` before ``activation``. With
    activation ``any`` the problem says all three: the kernel serves each of them, and up to 4 D tensors. A
    ``batched`` kernel serves several products of one shape, a ``grouped`` one products of different shapes; with
    ``preshuffle`` B is given in the order in which the kernel reads it.
    """

    computed: ClassVar[tuple[str, ...]] = ("dtype_a", "dtype_b", "dtype_c", "dtype_acc", "layout")
    op: Literal["gemm"] = Field(description="The operation that the kernel computes.")
    dtype_a: DType = Field(description="Element type of A.")
    dtype_b: DType = Field(description="Element type of B. Default: the type of A.")
    dtype_c: DType = Field(
        description="Element type of C. Default: fp16 if A is fp8 or bf8, int32 if A is int8, otherwise the type of A."
    )
    dtype_acc: DType = Field(description="Type of the accumulators. Default: int32 for integers, otherwise fp32.")
    layout: Layout = Field(description="Storage order of A, B and C, in this order: r is row-major, c is column-major.")
    tile: Extent = Field(
        description="Extents of the output tile that one workgroup computes, e.g. `[128, 128, 32]`; on CPUs the extents"
        " of a cache block."
    )
    wave: Extent = Field(description="Number of waves in a workgroup along M, N and K, e.g. `[2, 2, 1]`.")
    warp_tile: Extent = Field(
        description="Extents of one matrix instruction, e.g. `[32, 32, 16]`; on CPUs the extents of the register block."
    )
    pipeline: Pipeline = Field(description="How operands travel from memory to the matrix units.")
    epilogue: Epilogue = Field(description="How the accumulators reach memory.")
    scheduler: Scheduler = Field(
        description="How loads and matrix instructions are ordered: intrawave, interwave or default on AMD, cooperative"
        " or pingpong on NVIDIA, default on CPUs."
    )
    pad: Padding = Field(
        default=Padding(),
        description="Whether M, N and K may be other than multiples of the tile, e.g. `[True, True, False]`.",
    )
    persistent: StrictBool = Field(
        default=False, description="Whether a fixed number of workgroups loops over all tiles."
    )
    preshuffle: StrictBool = Field(
        default=False, description="Whether B is stored in the order in which the matrix instructions read it."
    )
    cluster: Extent = Field(
        default=Extent(m=1, n=1, k=1),
        description="Workgroups in a thread-block cluster along M, N and K (NVIDIA), e.g. `[2, 1, 1]`.",
    )
    num_wave_groups: int = Field(
        default=1, gt=0, le=MAX_EXTENT, strict=True, description="Number of wave groups that share the work of a tile."
    )
    k_block_per_cu: int = Field(
        default=1,
        gt=0,
        le=MAX_EXTENT,
        strict=True,
        description="Number of workgroups that must fit on a compute unit at once.",
    )
    split_k: StrictBool = omitted(
        False, "Whether several workgroups can share the K extent of a tile, each summing a slice."
    )
    stream_k: StreamK = omitted(
        StreamK.NONE, "Whether workgroups share the K steps of all tiles evenly, and how partial sums are added."
    )
    num_d: int = omitted(0, "Number of D tensors that the epilogue combines with the product.", ge=0, le=MAX_D_TENSORS)
    d_op: DOp = omitted(DOp.ADD, "How the epilogue combines the D tensors with the product.")
    activation: Activation = omitted(
        Activation.NONE, "The last step of the epilogue. `any`: the kernel serves every epilogue."
    )
    batched: StrictBool = omitted(False, "Whether one launch computes several products of the same shape.")
    grouped: StrictBool = omitted(False, "Whether one launch computes several products of different shapes.")

    @property
    def fused(self) -> bool:
        """Whether the epilogue does more than scale and convert."""
        return self.num_d > 0 or self.activation is not Activation.NONE

    @property
    def variant(self) -> str:
        """The word of :data:`VARIANTS` that best describes what the kernel serves."""
        if self.grouped:
            return "grouped"
        if self.batched:
            return "batched"
        if self.stream_k is not StreamK.NONE:
            return "stream_k"
        if self.fused:
            return "multi_d"
        return "preshuffle" if self.preshuffle else "standard"

    @cached_property
    def dtype_key(self) -> str:
        """``<a>_<b>_<acc>``: the key by which architecture files look up a combination of dtypes."""
        return f"{self.dtype_a}_{self.dtype_b}_{self.dtype_acc}"


VARIANTS = ("standard", "preshuffle", "multi_d", "stream_k", "batched", "grouped")
"""Values of :attr:`GemmSpec.variant`."""


def gemm_spec(kernel: Kernel) -> GemmSpec:
    """Return the spec of a GEMM kernel; TypeError for a kernel of another operation."""
    if not isinstance(kernel.spec, GemmSpec):
        raise TypeError(f"{kernel.name} is a kernel of {kernel.spec.op}, not of gemm")
    return kernel.spec
