"""The words of attention specs: families, data types, pipelines and enumerated features."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kernelwright.codegen.dtypes import DType
from kernelwright.problems.attention.words import (
    AttentionOp,
    Bias,
    Family,
    Mask,
    PageLayout,
    PageTable,
    QScale,
    Rope,
)

__all__ = [
    "AttentionOp",
    "Bias",
    "Constraint",
    "Family",
    "KvLookupTable",
    "Mask",
    "OperandTypes",
    "PageLayout",
    "PageTable",
    "Pipeline",
    "QScale",
    "Rope",
    "VLayout",
]


class OperandTypes(StrEnum):
    """Types of Q, K, V and O in one word, as CK Tile names them: fp8bf16 reads fp8 and writes bf16."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    BF8 = "bf8"
    FP8FP16 = "fp8fp16"
    FP8BF16 = "fp8bf16"
    FP8FP32 = "fp8fp32"

    @property
    def inputs(self) -> DType:
        """The element type of Q, K and V."""
        return _INPUTS[self]

    @property
    def output(self) -> DType:
        """The element type of O."""
        return _OUTPUT[self]


_INPUTS: Mapping[OperandTypes, DType] = {
    OperandTypes.FP32: DType.FP32,
    OperandTypes.FP16: DType.FP16,
    OperandTypes.BF16: DType.BF16,
    OperandTypes.FP8: DType.FP8,
    OperandTypes.BF8: DType.BF8,
    OperandTypes.FP8FP16: DType.FP8,
    OperandTypes.FP8BF16: DType.FP8,
    OperandTypes.FP8FP32: DType.FP8,
}
_OUTPUT: Mapping[OperandTypes, DType] = {
    **_INPUTS,
    OperandTypes.FP8FP16: DType.FP16,
    OperandTypes.FP8BF16: DType.BF16,
    OperandTypes.FP8FP32: DType.FP32,
}


class Pipeline(StrEnum):
    """How Q, K and V travel from memory to the matrix units."""

    QR = "qr"  # Q stays in registers
    QR_ASYNC = "qr_async"  # K and V are loaded from memory straight into LDS
    QS = "qs"  # Q stays in LDS
    QR_ASYNC_TRLOAD = "qr_async_trload"  # V is transposed as it is read from LDS
    QR_ASYNC_TRLOAD_V3 = "qr_async_trload_v3"  # two wave groups take turns
    V3 = "v3"
    QR_PAGEDKV = "qr_pagedkv"
    QR_NWARP_SSHUFFLE = "qr_nwarp_sshuffle"  # waves share the keys of a tile
    COMBINE = "combine"
    APPENDKV = "appendkv"
    BWD = "bwd"
    TMA = "tma"  # NVIDIA: bulk tensor copies, warp specialised
    MMA = "mma"  # NVIDIA: asynchronous copies of 16 bytes, mma.sync
    PACKED = "packed"  # CPU: K and V packed into cache blocks


class VLayout(StrEnum):
    """Storage order of V: row means that the head dimension is contiguous."""

    ROW = "row"
    COL = "col"


class KvLookupTable(StrEnum):
    """How pages are found: a rectangular block table for each request, or one list of pages with offsets."""

    VLLM = "vllm"
    SGLANG = "sglang"


class Constraint(StrEnum):
    """Which problems a kernel is kept for, beyond those that it can compute."""

    NONE = "none"
    FEW_BLOCKS = "few_blocks"  # larger tiles would leave compute units idle
