"""Attention specs: what to compute and how to tile it."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, StrictBool

from kernelwright.codegen.kernel import Frozen, Kernel, Spec
from kernelwright.codegen.operations.attention.kinds import (
    Bias,
    Constraint,
    Family,
    KvLookupTable,
    Mask,
    OperandTypes,
    PageLayout,
    Pipeline,
    QScale,
    Rope,
    VLayout,
)

MAX_EXTENT = 4096  # of tiles; with MAX_STAGE it keeps names below 240 characters
MAX_STAGE = 256
MAX_LENGTH = 65536
MAX_HDIM = 1024

_EXTENT = Field(default=0, ge=0, le=MAX_EXTENT, strict=True)
_STAGE = Field(default=0, ge=0, le=MAX_STAGE, strict=True)


class Tile(Frozen):
    """Extents of what one workgroup computes at a time; 0 where a family has no such extent.

    GEMM 0 is S = Q·Kᵀ: ``m0`` queries by ``n0`` keys, ``k0`` of the head dimension at a time. GEMM 1 is O = P·V: ``n1``
    of V's head dimension, ``k1`` keys at a time. ``k0max`` is Q's head dimension as the tile holds it.
    """

    m0: int = Field(default=0, ge=0, le=MAX_EXTENT, strict=True, description="Queries of a tile.")
    n0: int = _EXTENT
    k0: int = _EXTENT
    n1: int = _EXTENT
    k1: int = _EXTENT
    k0max: int = _EXTENT


class BwdTile(Frozen):
    """Extents of a tile of bwd_dq_dk_dv; 0 in all other families.

    ``m0`` queries by ``n0`` keys; ``k0`` … ``k4`` are the steps along the summed extent of S = Q·Kᵀ, dV = Pᵀ·dO,
    dP = dO·Vᵀ, dK = dSᵀ·Q and dQ = dS·K; then the head dimensions.
    """

    m0: int = Field(default=0, ge=0, le=MAX_EXTENT, strict=True, description="Queries of a tile.")
    n0: int = _EXTENT
    k0: int = _EXTENT
    k1: int = _EXTENT
    k2: int = _EXTENT
    k3: int = _EXTENT
    k4: int = _EXTENT
    hdim_q: int = _EXTENT
    hdim_v: int = _EXTENT


class Stages(Frozen):
    """Three extents for each of up to three stages of matrix products; 0 where a family has no such stage.

    Forward kernels have two stages (GEMM 0 and GEMM 1 of the tile). bwd_dq_dk_dv has three: S and dP, dV and dK, dQ.
    """

    m0: int = Field(default=0, ge=0, le=MAX_STAGE, strict=True, description="Extent of the first stage along M.")
    n0: int = _STAGE
    k0: int = _STAGE
    m1: int = _STAGE
    n1: int = _STAGE
    k1: int = _STAGE
    m2: int = _STAGE
    n2: int = _STAGE
    k2: int = _STAGE


class Pad(Frozen):
    """True where the kernel handles lengths and head dimensions that are no multiple of the tile."""

    s: StrictBool = Field(default=True, description="Whether there may be any number of queries.")
    sk: StrictBool = Field(default=True, description="Whether there may be any number of keys.")
    d: StrictBool = Field(default=True, description="Whether the head dimension of Q and K may be smaller.")
    dv: StrictBool = Field(default=True, description="Whether the head dimension of V may be smaller.")


def _flag(about: str) -> bool:
    flag: bool = Field(default=False, description=about)
    return flag


class AttentionSpec(Spec):
    """One kernel of fused attention: O = softmax(scale * Q·Kᵀ + bias, masked)·V, or a step of it or of its gradient.

    ``family`` says which step. Fields that a family does not read keep their defaults; a rule refuses other values, so
    that one kernel has one spec. Every field is part of the identity and of the name.
    """

    target: ClassVar[str] = "fmha_kernel"
    computed: ClassVar[tuple[str, ...]] = ("family", "dtype", "mask", "bias")
    op: Literal["attention"] = Field(description="The operation that the kernel belongs to.")
    family: Family = Field(description="What the kernel computes, e.g. `fwd`, `fwd_splitkv` or `bwd_dq_dk_dv`.")
    dtype: OperandTypes = Field(description="Types of Q, K, V and O: fp8bf16 reads fp8 and writes bf16.")
    hdim_q: int = Field(gt=0, le=MAX_HDIM, strict=True, description="Head dimension of Q and K; with padding the most.")
    hdim_v: int = Field(gt=0, le=MAX_HDIM, strict=True, description="Head dimension of V and O. Default: that of Q.")
    group: StrictBool = _flag("Whether requests have lengths of their own (group mode) or all the same (batch mode).")
    v_layout: VLayout = Field(default=VLayout.ROW, description="Storage order of V.")
    logits_soft_cap: StrictBool = _flag("Whether scores are capped: cap * tanh(score / cap).")
    mask: Mask = Field(default=Mask.NONE, description="Which keys a query sees.")
    bias: Bias = Field(default=Bias.NONE, description="What is added to the scores.")
    lse: StrictBool = _flag("Whether the logarithm of each row's sum of exponentials is stored.")
    dropout: StrictBool = _flag("Whether probabilities are dropped at random.")
    qscale: QScale = Field(default=QScale.NONE, description="Scales of quantised operands.")
    rope: Rope = Field(default=Rope.NONE, description="Rotary embedding of Q and of the new keys.")
    paged_kv: StrictBool = _flag("Whether K and V are in pages.")
    static_quant: StrictBool = _flag("Whether fp8 operands have one scale that is known before (split-KV, paged KV).")
    skip_min_seqlen_q: StrictBool = _flag("Whether requests with fewer queries than an argument says are skipped.")
    sink: StrictBool = _flag("Whether each head has a sink, a score that takes part in the sum but has no value.")
    dbias: StrictBool = _flag("Whether the gradient of the bias is computed.")
    store_randval: StrictBool = _flag("Whether the random bytes of dropout are stored.")
    deterministic: StrictBool = _flag("Whether dQ is summed in a fixed order.")
    kv_memory_layout: PageLayout = Field(
        default=PageLayout.LINEAR, description="Order of the elements within a page (batch_prefill)."
    )
    kv_lookup_table: KvLookupTable = Field(
        default=KvLookupTable.VLLM, description="How pages are found (batch_prefill)."
    )
    page_size: int = Field(
        default=0, ge=0, le=MAX_LENGTH, strict=True, description="Keys of a page (batch_prefill); 0: an argument."
    )
    pipeline: Pipeline = Field(description="How Q, K and V travel from memory to the matrix units.")
    tile: Tile = Field(
        default=Tile(), description="Extents of a tile, e.g. `[128, 128, 32, 128, 32, 128]`; 0 where there is none."
    )
    bwd_tile: BwdTile = Field(
        default=BwdTile(), description="Extents of a tile of bwd_dq_dk_dv: `[16, 128, 128, 16, 128, 16, 32, 128, 128]`."
    )
    wave: Stages = Field(default=Stages(), description="Waves of a workgroup in each stage: `[4, 1, 1, 4, 1, 1]`.")
    warp_tile: Stages = Field(
        default=Stages(), description="One matrix instruction of each stage: `[32, 32, 16, 32, 32, 16]`."
    )
    pad: Pad = Field(
        default=Pad(), description="Whether queries, keys and both head dimensions may be other than the tile's."
    )
    trload: StrictBool = _flag("Whether operands are transposed as they are read from LDS.")
    block_per_cu: int = Field(
        default=-1, ge=-1, le=64, strict=True, description="Workgroups on a compute unit; -1: as the pipeline chooses."
    )
    num_wave_groups: int = Field(
        default=1, ge=0, le=8, strict=True, description="Groups of waves that take turns (pipelines v3)."
    )
    max_splits_log2: int = Field(
        default=0, ge=0, le=12, strict=True, description="Logarithm of the most splits (fwd_splitkv_combine)."
    )
    max_seq_len_q: int = Field(
        default=0, ge=0, le=MAX_LENGTH, strict=True, description="Most queries (bwd_dq_dk_dv); 0: any number."
    )
    hdim_q_alignment: int = Field(
        default=0,
        ge=0,
        le=64,
        strict=True,
        description="What divides a padded head dimension of Q; 0: as pipelines do.",
    )
    hdim_v_alignment: int = Field(
        default=0,
        ge=0,
        le=64,
        strict=True,
        description="What divides a padded head dimension of V; 0: as pipelines do.",
    )
    constraint_tag: Constraint = Field(
        default=Constraint.NONE, description="Which problems the kernel is kept for, beyond those that it can compute."
    )

    @property
    def variant(self) -> str:
        """The family."""
        return str(self.family)


def attention_spec(kernel: Kernel) -> AttentionSpec:
    """The spec of an attention kernel; TypeError for a kernel of another operation."""
    if not isinstance(kernel.spec, AttentionSpec):
        raise TypeError(f"{kernel.name} is a kernel of {kernel.spec.op}, not of attention")
    return kernel.spec
