"""Attention on CPUs: the C++ symbols of its kernels, and what the C ABI says of them.

The kernels stand in dispatcher_cpp/include/kernelwright/cpu/attention. They read lengths, strides and most features at
run time, so a kernel serves problems that lack what it has: without mask, LSE, sinks, dropout, bias or groups. 8-bit
operands are widened to fp32, times factors of every kind, before kernels of fp32 see them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.c_names import members
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention.arch_section import attention_features
from kernelwright.codegen.operations.attention.kinds import (
    Bias,
    Family,
    KvLookupTable,
    Mask,
    OperandTypes,
    PageLayout,
    PageTable,
    QScale,
    Rope,
)
from kernelwright.codegen.operations.attention.rules.structs import BOTH, Traits, flag, only
from kernelwright.codegen.operations.attention.spec import AttentionSpec, attention_spec
from kernelwright.codegen.symbols import CPU_DTYPES, part
from kernelwright.codegen.trees import launcher_files

OPERATIONS: Mapping[tuple[OperandTypes, int], str] = {
    (OperandTypes.FP32, 1): "widened_fma<fp32>",
    (OperandTypes.FP16, 1): "widened_fma<fp16>",
    (OperandTypes.BF16, 1): "widened_fma<bf16>",
    (OperandTypes.BF16, 2): "bf16_dot",
    (OperandTypes.FP8, 1): "",
    (OperandTypes.FP8FP16, 1): "",
    (OperandTypes.FP8BF16, 1): "",
    (OperandTypes.FP8FP32, 1): "",
}
"""By dtype and the values that one instruction sums (warp_tile.k0); "" where kernels choose it themselves."""

ELEMENTS = part(CPU_DTYPES, DType.FP32, DType.FP16, DType.BF16, DType.FP8)
TABLES: Mapping[KvLookupTable, PageTable] = {
    KvLookupTable.VLLM: PageTable.BLOCK,
    KvLookupTable.SGLANG: PageTable.LIST,
}

PART = frozenset({Family.FWD, Family.FWD_SPLITKV, Family.FWD_PAGEDKV, Family.BATCH_PREFILL})
"""Families of forward attention, which are one kernel here."""

SOURCES = launcher_files("cpu", "attention", "launch")
"""Launcher sources that a library with attention kernels contains beside the driver of all CPU kernels."""
TREES = ("cpu_attention", "gemm", "cpu_gemm")
"""The inner loops share packing, products and activations with GEMM."""


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """C++ symbols for ``templates/cpu/attention.hpp.jinja``; the spec must have passed the rules."""
    spec = attention_spec(kernel)
    features = attention_features(spec.dtype, spec.warp_tile.k0, arch)
    return {
        "kernel_type": _kernel_type(spec),
        "variant": {name: members(traits(spec))[name] for name in VARIANT},
        "required_features": " | ".join(map(_enumerator, features)) or "kNoFeature",
        "features": " ".join(features),
    }


def _kernel_type(spec: AttentionSpec) -> str:
    """The template of the family with its arguments."""
    if spec.family is Family.FWD_APPENDKV:
        return f"attention_append<{ELEMENTS[spec.dtype.inputs]}>"
    if spec.family not in PART and spec.family is not Family.BWD_DQ_DK_DV:
        return f"attention_lines<{ELEMENTS[spec.dtype.output]}>"
    operation = OPERATIONS[spec.dtype, spec.warp_tile.k0]
    cap, dropout = (str(has).lower() for has in (spec.logits_soft_cap, spec.dropout))
    scores = f"score_features<{cap}, {spec.bias.c_name}, {dropout}>"
    registers = f"/*warp tile*/ {spec.warp_tile.n0}, {spec.warp_tile.m0}"
    if spec.family in PART:
        tile = f"/*tile*/ {spec.tile.m0}, {spec.tile.n0}"
        if not operation:
            return f"attention_part_of_8_bits<{scores}, {tile}, {registers}, {ELEMENTS[spec.dtype.output]}>"
        return f"attention_part<{operation}, {scores}, {tile}, {registers}>"
    return f"attention_gradients<{operation}, {scores}, /*tile*/ {spec.bwd_tile.n0}, {registers}>"


VARIANT = (
    *("family", "hdim_q", "hdim_v", "pad_d", "pad_dv", "groups", "masks", "biases", "lses", "sinks", "dropouts"),
    *("soft_caps", "page_tables", "page_size", "max_splits", "leaves_splits", "dbiases", "ropes", "selection_rank"),
)
"""The members of kernelwright::cpu::attention_variant, in their order; templates know the others."""


def traits(spec: AttentionSpec) -> Traits:
    """What descriptors say of a kernel."""
    splits = spec.family in (Family.FWD_SPLITKV, Family.FWD_SPLITKV_COMBINE)
    variant: dict[str, Any] = {
        "family": spec.family,
        "hdim_q": spec.hdim_q,
        "hdim_v": spec.hdim_v,
        "pad_d": spec.pad.d,
        "pad_dv": spec.pad.dv,
        "groups": flag(spec.group),
        "masks": frozenset({Mask.NONE if spec.mask is Mask.NONE else Mask.GENERIC}),
        "biases": frozenset({Bias.NONE, spec.bias}),
        "lses": flag(spec.lse),
        "sinks": flag(spec.sink),
        "dropouts": flag(spec.dropout),
        # Specs of backward kernels do not say it: they look at run time.
        "soft_caps": flag(spec.logits_soft_cap or spec.family is Family.BWD_DQ_DK_DV),
        "page_tables": frozenset(_tables(spec)),
        "page_size": spec.page_size,
        "max_splits": 4096 if splits else 1,
        "leaves_splits": only(spec.family is Family.FWD_SPLITKV),
        "dbiases": flag(spec.dbias),
        "ropes": frozenset({Rope.NONE, spec.rope}),
        "selection_rank": _rank(spec),
    }
    return Traits(**{**variant, **_of_template(spec)})


def _rank(spec: AttentionSpec) -> int:
    """1 where instructions exist that sum more products of these types: no formula tells how much faster they are."""
    depth = spec.warp_tile.k0  # 0: no products at all
    return int(depth > 0 and any(dtype is spec.dtype and other > depth for dtype, other in OPERATIONS))


def _tables(spec: AttentionSpec) -> tuple[PageTable, ...]:
    """Where K and V may be."""
    if spec.family is Family.BATCH_PREFILL:
        return (TABLES[spec.kv_lookup_table],)
    if spec.family is Family.FWD_APPENDKV:
        return (PageTable.NONE, PageTable.BLOCK) if spec.paged_kv else (PageTable.NONE,)
    unpaged = () if spec.family is Family.FWD_PAGEDKV else (PageTable.NONE,)
    return (*unpaged, *TABLES.values()) if spec.paged_kv else unpaged


def _of_template(spec: AttentionSpec) -> Mapping[str, Any]:
    """What cpu/attention/attention.hpp adds to the variant."""
    dtype, narrow, out = spec.dtype.inputs, ELEMENT_BYTES[spec.dtype.inputs] == 1, spec.dtype.output
    common = {"dtype_q": dtype, "dtype_kv": dtype, "dtype_o": out, "pad_s": True, "pad_sk": True}
    linear = frozenset({PageLayout.LINEAR})
    if spec.family is Family.FWD_APPENDKV:
        return {**common, "dtype_bias": None if spec.rope is Rope.NONE else dtype, "page_layouts": linear}
    if spec.family not in PART and spec.family is not Family.BWD_DQ_DK_DV:
        return {**common, "dtype_q": out, "dtype_kv": out}
    bias = DType.FP32 if narrow else dtype
    scores = {
        **common,
        "dtype_bias": bias if spec.bias is Bias.ELEMENTWISE else None,
        "kv_lengths": BOTH,
        "random_bytes": flag(False),
    }
    if spec.family is Family.BWD_DQ_DK_DV:
        tile = {"tile_m0": spec.warp_tile.m0, "tile_n0": spec.bwd_tile.n0}
        return {**scores, **tile, "deterministics": BOTH, "leaves_dq": 1}
    return {
        **scores,
        "tile_m0": spec.tile.m0,
        "tile_n0": spec.tile.n0,
        "min_seqlens_q": BOTH,
        "qscales": frozenset(QScale) if narrow else frozenset({QScale.NONE}),
        "page_layouts": linear,
        "packs_heads": 1,
    }


def _enumerator(feature: str) -> str:
    """The name of kernelwright::cpu::feature for a feature of the architecture file: kAvx512Bf16 for avx512_bf16."""
    return "k" + "".join(part.capitalize() for part in feature.split("_"))
