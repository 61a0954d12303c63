"""Attention on CPUs: the C++ symbols of its kernels, and what the C ABI says of them.

The kernels stand in dispatcher_cpp/include/kernelwright/cpu/attention. They read lengths, strides and most features at
run time, so a kernel serves problems that lack what it has: without mask, LSE, sinks, dropout, bias or groups. 8-bit
operands are widened to fp32, times factors of every kind, before kernels of fp32 see them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kernelwright.arch import load
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention.arch_section import attention_features
from kernelwright.codegen.operations.attention.kinds import Bias, Family, KvLookupTable, Mask, OperandTypes, Rope
from kernelwright.codegen.operations.attention.spec import AttentionSpec, attention_spec

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

ELEMENTS: Mapping[DType, str] = {DType.FP32: "fp32", DType.FP16: "fp16", DType.BF16: "bf16", DType.FP8: "fp8"}
BIASES: Mapping[Bias, str] = {
    Bias.NONE: "KW_BIAS_NONE",
    Bias.ELEMENTWISE: "KW_BIAS_ELEMENTWISE",
    Bias.ALIBI: "KW_BIAS_ALIBI",
}
ROPES: Mapping[Rope, str] = {
    Rope.NONE: "KW_ROPE_NONE",
    Rope.INTERLEAVED: "KW_ROPE_INTERLEAVED",
    Rope.HALF: "KW_ROPE_HALF",
}
TABLES: Mapping[KvLookupTable, str] = {KvLookupTable.VLLM: "KW_PAGES_BLOCK", KvLookupTable.SGLANG: "KW_PAGES_LIST"}

PART = frozenset({Family.FWD, Family.FWD_SPLITKV, Family.FWD_PAGEDKV, Family.BATCH_PREFILL})
"""Families of forward attention, which are one kernel here."""

SOURCES = {"attention_launcher": "__cpu_attention_launcher/include/kernelwright/cpu/launchers/attention/launcher.cpp"}
"""Launcher sources that a library with attention kernels contains beside the driver of all CPU kernels."""
TREES = ("cpu_attention", "gemm", "cpu_gemm")
"""The inner loops share packing, products and activations with GEMM."""


def context(kernel: Kernel) -> Mapping[str, object]:
    """C++ symbols for ``templates/cpu/attention.hpp.jinja``; the spec must have passed the rules."""
    spec = attention_spec(kernel)
    features = attention_features(spec.dtype, spec.warp_tile.k0, load(kernel.arch))
    return {
        "kernel_type": _kernel_type(spec),
        "variant": variant(spec),
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
    cap, dropout = (str(flag).lower() for flag in (spec.logits_soft_cap, spec.dropout))
    scores = f"score_features<{cap}, {BIASES[spec.bias]}, {dropout}>"
    registers = f"/*warp tile*/ {spec.warp_tile.n0}, {spec.warp_tile.m0}"
    if spec.family in PART:
        tile = f"/*tile*/ {spec.tile.m0}, {spec.tile.n0}"
        if not operation:
            return f"attention_part_of_8_bits<{scores}, {tile}, {registers}, {ELEMENTS[spec.dtype.output]}>"
        return f"attention_part<{operation}, {scores}, {tile}, {registers}>"
    return f"attention_gradients<{operation}, {scores}, /*tile*/ {spec.bwd_tile.n0}, {registers}>"


def variant(spec: AttentionSpec) -> Mapping[str, str | int]:
    """The members of kernelwright::cpu::attention_variant, in their order."""
    splits = spec.family in (Family.FWD_SPLITKV, Family.FWD_SPLITKV_COMBINE)
    biases = dict.fromkeys((Bias.NONE, spec.bias))
    generic = ("KW_MASK_NONE",) if spec.mask is Mask.NONE else ("KW_MASK_GENERIC",)
    return {
        "family": f"KW_ATTENTION_{spec.family.upper()}",
        "hdim_q": spec.hdim_q,
        "hdim_v": spec.hdim_v,
        "pad_d": int(spec.pad.d),
        "pad_dv": int(spec.pad.dv),
        "groups": _flag(spec.group),
        "masks": _serves(generic),
        "biases": _serves(BIASES[bias] for bias in biases),
        "lses": _flag(spec.lse),
        "sinks": _flag(spec.sink),
        "dropouts": _flag(spec.dropout),
        # Specs of backward kernels do not say it: they look at run time.
        "soft_caps": _flag(spec.logits_soft_cap or spec.family is Family.BWD_DQ_DK_DV),
        "page_tables": _serves(_tables(spec)),
        "page_size": spec.page_size,
        "max_splits": 4096 if splits else 1,
        "leaves_splits": _serves("1" if spec.family is Family.FWD_SPLITKV else "0"),
        "dbiases": _flag(spec.dbias),
        "ropes": _serves(dict.fromkeys((ROPES[Rope.NONE], ROPES[spec.rope]))),
        "selection_rank": spec.selection_rank,
    }


def _tables(spec: AttentionSpec) -> tuple[str, ...]:
    """Where K and V may be."""
    if spec.family is Family.BATCH_PREFILL:
        return (TABLES[spec.kv_lookup_table],)
    if spec.family is Family.FWD_APPENDKV:
        return ("KW_PAGES_NONE", TABLES[KvLookupTable.VLLM]) if spec.paged_kv else ("KW_PAGES_NONE",)
    unpaged = () if spec.family is Family.FWD_PAGEDKV else ("KW_PAGES_NONE",)
    return (*unpaged, *TABLES.values()) if spec.paged_kv else unpaged


def _serves(values: Iterable[str]) -> str:
    """A set of kw_attention_traits."""
    return " | ".join(f"KW_SERVES({value})" for value in values)


def _flag(has: bool) -> str:
    """A kernel that has something also serves problems that lack it."""
    return "KW_SERVES_BOTH" if has else "KW_SERVES(0)"


def _enumerator(feature: str) -> str:
    """The name of kernelwright::cpu::feature for a feature of the architecture file: kAvx512Bf16 for avx512_bf16."""
    return "k" + "".join(part.capitalize() for part in feature.split("_"))
