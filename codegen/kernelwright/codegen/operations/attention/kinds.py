"""The words of attention specs: families, data types, pipelines and features that are one of several."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kernelwright.codegen.c_names import c_enum
from kernelwright.codegen.dtypes import DType


@c_enum("KW_ATTENTION_", "kw_attention_family_name", "kernelwright/attention.h")
class Family(StrEnum):
    """What a kernel computes. A problem may take kernels of several families, one after the other."""

    FWD = "fwd"
    FWD_SPLITKV = "fwd_splitkv"  # parts of the keys, each with its own softmax
    FWD_SPLITKV_COMBINE = "fwd_splitkv_combine"  # puts the parts together
    FWD_PAGEDKV = "fwd_pagedkv"  # K and V in pages
    FWD_APPENDKV = "fwd_appendkv"  # writes new K and V into the cache, with rotary embedding if asked for
    BATCH_PREFILL = "batch_prefill"  # ragged requests, K and V in pages
    BWD_DOT_DO_O = "bwd_dot_do_o"  # D = rowsum(dO * O)
    BWD_DQ_DK_DV = "bwd_dq_dk_dv"
    BWD_CONVERT_DQ = "bwd_convert_dq"  # sums or converts the fp32 dQ

    @property
    def backward(self) -> bool:
        """Does the kernel belong to the backward pass?"""
        return self in _BACKWARD


_BACKWARD = frozenset({Family.BWD_DOT_DO_O, Family.BWD_DQ_DK_DV, Family.BWD_CONVERT_DQ})


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


@c_enum("KW_MASK_", "kw_mask_name", "kernelwright/attention.h")
class Mask(StrEnum):
    """Which keys a query sees; generic masks are windows whose two widths are arguments, causal ones among them."""

    NONE = "none"
    TOP_LEFT = "top_left"
    BOTTOM_RIGHT = "bottom_right"
    GENERIC = "generic"


@c_enum("KW_BIAS_", "kw_bias_name", "kernelwright/attention.h")
class Bias(StrEnum):
    """What is added to the scores: a matrix, or slopes times the distance of query and key."""

    NONE = "none"
    ELEMENTWISE = "elementwise"
    ALIBI = "alibi"


@c_enum("KW_QSCALE_", "kw_qscale_name", "kernelwright/attention.h")
class QScale(StrEnum):
    """Scales of quantised operands: for each tensor, for each block of Q, K and V, or of K and V alone."""

    NONE = "none"
    PER_TENSOR = "per_tensor"
    BLOCK_SCALE = "block_scale"
    KV_BLOCK_SCALE = "kv_block_scale"


@c_enum("KW_ROPE_", "kw_rope_name", "kernelwright/attention.h")
class Rope(StrEnum):
    """Which elements a rotary embedding turns together: neighbours, or those half a head apart."""

    NONE = "none"
    INTERLEAVED = "interleaved"
    HALF = "half"


class KvMemoryLayout(StrEnum):
    """Order within a page: linear, or in vectors of 16 bytes along the head dimension (K) and the keys (V)."""

    VECTORIZED = "vectorized"
    LINEAR = "linear"


class KvLookupTable(StrEnum):
    """How pages are found: a rectangular block table for each request, or one list of pages with offsets."""

    VLLM = "vllm"
    SGLANG = "sglang"


class Constraint(StrEnum):
    """Which problems a kernel is kept for, beyond those that it can compute."""

    NONE = "none"
    FEW_BLOCKS = "few_blocks"  # larger tiles would leave compute units idle


@c_enum("KW_PAGES_", "kw_page_table_name", "kernelwright/attention.h")
class PageTable(StrEnum):
    """How the C ABI says that pages are found."""

    NONE = "none"
    BLOCK = "block table"
    LIST = "page list"


@c_enum("KW_PAGE_", "kw_page_layout_name", "kernelwright/attention.h")
class PageLayout(StrEnum):
    """Order within a page."""

    LINEAR = "linear"
    VECTORIZED = "vectorized"


@c_enum("KW_OP_", "kw_attention_op_name", "kernelwright/attention.h")
class AttentionOp(StrEnum):
    """What a problem of the C ABI asks for: the whole, or a stage that kernels serve."""

    ATTENTION = "attention"
    ATTENTION_BACKWARD = "attention backward"
    ATTENTION_PART = "attention part"
    ATTENTION_COMBINE = "attention combine"
    ATTENTION_APPEND = "attention append"
    ATTENTION_DOT = "attention dot"
    ATTENTION_DQ_DK_DV = "attention dq_dk_dv"
    ATTENTION_CONVERT_DQ = "attention convert_dq"
