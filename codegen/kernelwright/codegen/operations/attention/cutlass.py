"""Attention on NVIDIA GPUs: the C++ symbols of its kernels and what the C ABI says of them.

The kernels stand in dispatcher_cpp/include/kernelwright/cuda/attention, around FlashInfer's and CUTLASS's headers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.c_names import members
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention.kinds import (
    Bias,
    Family,
    Mask,
    OperandTypes,
    PageLayout,
    PageTable,
    Pipeline,
    QScale,
    Rope,
)
from kernelwright.codegen.operations.attention.rules.structs import BOTH, Traits, flag, only
from kernelwright.codegen.operations.attention.spec import AttentionSpec, attention_spec
from kernelwright.codegen.symbols import CUTLASS_DTYPES, part
from kernelwright.codegen.trees import launcher_files

TREES = ("cuda_src_attention", "flashinfer_edited", "flashinfer")
SOURCES = launcher_files("cutlass", "attention", "launch")
"""Launcher sources that a library with attention kernels contains."""

VECTOR = 8
"""Elements that head dimensions are multiples of: rows are read and written by 16 bytes."""

HELPERS = ("list_tiles", "overlapped_convert")
"""Parts of the symbols of device functions that run beside a kernel."""

ELEMENTS = {OperandTypes(dtype): symbol for dtype, symbol in part(CUTLASS_DTYPES, DType.FP16, DType.BF16).items()}


# Kernels of the pipeline tma are made of CuTe's parts; the others use CUDA's own types.
PLAIN_ELEMENTS: Mapping[OperandTypes, str] = {
    OperandTypes.FP16: "kernelwright::cuda::half",
    OperandTypes.BF16: "kernelwright::cuda::bfloat16",
}


@dataclass(frozen=True)
class Source:
    """Where the kernels of a family come from: a launcher in a header, and what it is told of a spec.

    ``config`` makes the constants of the kernel, ``traits`` the members of kw_attention_traits that are the family's
    own.
    """

    header: str
    launcher: str
    config: Callable[[AttentionSpec], Mapping[str, object]]
    traits: Callable[[AttentionSpec], Mapping[str, Any]]


MASKS: Mapping[Mask, tuple[Mask, ...]] = {
    Mask.NONE: (Mask.NONE,),
    Mask.TOP_LEFT: (Mask.TOP_LEFT, Mask.BOTTOM_RIGHT),
    Mask.BOTTOM_RIGHT: (Mask.TOP_LEFT, Mask.BOTTOM_RIGHT),
    Mask.GENERIC: (Mask.GENERIC,),
}
"""Which masks a kernel serves: where queries stand is a number of the launch."""


_UNPAGED = frozenset({PageTable.NONE})
_PAGED = frozenset({PageTable.BLOCK, PageTable.LIST})


def _forward_config(spec: AttentionSpec) -> Mapping[str, object]:
    return {
        "tile_m": spec.tile.m0,
        "tile_n": spec.tile.n0,
        "hdim_q": spec.hdim_q,
        "hdim_v": spec.hdim_v,
        "bounded": spec.mask is not Mask.NONE,
        "windowed": spec.mask is Mask.GENERIC,
        "soft_cap": spec.logits_soft_cap,
        "bias": _addend(spec.bias),
        "paged": spec.paged_kv,
    }


def _forward_traits(spec: AttentionSpec) -> Mapping[str, Any]:
    return {
        "groups": flag(spec.group),
        "kv_lengths": BOTH,
        "page_tables": _PAGED if spec.paged_kv else _UNPAGED,
        "page_layouts": frozenset({PageLayout.LINEAR}),
        "page_size": 0,  # all that its checks of a problem allow
        "leaves_splits": flag(False),
    }


BIASES: Mapping[Bias, tuple[Bias, ...]] = {
    Bias.NONE: (Bias.NONE,),
    Bias.ALIBI: (Bias.NONE, Bias.ALIBI),
    Bias.ELEMENTWISE: tuple(Bias),
}
"""Which biases kernels of mma.sync serve: they choose by the problem. Others serve their own alone."""


def _addend(bias: Bias) -> str:
    return f"kernelwright::cuda::attention::addend::{bias}"


def _split_config(spec: AttentionSpec) -> Mapping[str, object]:
    return {"hdim": spec.hdim_q, "soft_cap": spec.logits_soft_cap, "bias": _addend(spec.bias), "stages": 3}


def _split_traits(spec: AttentionSpec) -> Mapping[str, Any]:
    return {
        "groups": flag(spec.group),
        "kv_lengths": BOTH,
        "sinks": BOTH,
        "soft_caps": flag(spec.logits_soft_cap),
        "biases": frozenset(BIASES[spec.bias]),
        # Where a problem has neither, a kernel without them need not ask.
        "selection_rank": int(spec.logits_soft_cap or spec.bias is not Bias.NONE),
        "page_tables": _UNPAGED | (_PAGED if spec.paged_kv else frozenset()),
        "page_layouts": frozenset({PageLayout.LINEAR}),
        "page_size": 0,
        "leaves_splits": BOTH,
        "max_splits": 1 << _MOST_SPLITS_LOG2,
        "packs_heads": 1,
        "blocks_per_cu": _FULL_HDIM // spec.hdim_q,
    }


def _combine_config(spec: AttentionSpec) -> Mapping[str, object]:
    return {"hdim": spec.hdim_v}


def _combine_traits(spec: AttentionSpec) -> Mapping[str, Any]:
    return {"groups": flag(spec.group), "max_splits": 1 << spec.max_splits_log2, "selection_rank": _narrow(spec)}


def _narrow(spec: AttentionSpec) -> int:
    """The rank of a kernel whose predicted time does not tell how many of its threads have nothing to do."""
    return spec.hdim_v // _LEAST_HDIM


_ROPES: Mapping[Rope, str] = {Rope.NONE: "none", Rope.INTERLEAVED: "interleaved", Rope.HALF: "half"}


def _append_config(spec: AttentionSpec) -> Mapping[str, object]:
    return {"hdim": spec.hdim_q, "rope": f"kernelwright::cuda::attention::rotation::{_ROPES[spec.rope]}"}


def _append_traits(spec: AttentionSpec) -> Mapping[str, Any]:
    return {
        "page_tables": _UNPAGED | (frozenset({PageTable.BLOCK}) if spec.paged_kv else frozenset()),
        "page_layouts": frozenset({PageLayout.LINEAR}),
        "ropes": frozenset({Rope.NONE, spec.rope}),
        "selection_rank": _narrow(spec),
        **({"dtype_bias": spec.dtype.inputs} if spec.rope is not Rope.NONE else {}),
    }


def _gradient_config(spec: AttentionSpec) -> Mapping[str, object]:
    return {"hdim": spec.hdim_q, "bias": _addend(spec.bias)}


def _gradient_traits(spec: AttentionSpec) -> Mapping[str, Any]:
    return {
        "groups": flag(spec.group),
        "kv_lengths": BOTH,
        "tile_m0": spec.bwd_tile.m0,
        "tile_n0": spec.bwd_tile.n0,
        "leaves_dq": 0,
        "biases": frozenset(BIASES[spec.bias]),
        "soft_caps": BOTH,
        # Seven products for five, by mma.sync at about 0.63 of wgmma's rate; with 256 columns those of scores are
        # computed for both halves.
        "work_percent": 220 if spec.hdim_q < _FULL_HDIM else 340,
        "blocks_per_cu": 2 if spec.hdim_q < _FULL_HDIM else 1,  # 97 KB of shared memory, or 193 KB
    }


def _overlapped_config(spec: AttentionSpec) -> Mapping[str, object]:
    return {
        "hdim": spec.hdim_q,
        "tile_m": spec.bwd_tile.m0,
        "deterministic": spec.deterministic,
        "bias": _addend(spec.bias),
    }


def _overlapped_traits(spec: AttentionSpec) -> Mapping[str, Any]:
    return {
        **_gradient_traits(spec),
        **{"work_percent": 100, "blocks_per_cu": 1, "soft_caps": only(False), "biases": frozenset({spec.bias})},
        "deterministics": flag(spec.deterministic),
        # Where nobody asks for an order, workgroups need not wait for their turn.
        "selection_rank": int(spec.deterministic),
    }


def _dot_traits(spec: AttentionSpec) -> Mapping[str, Any]:
    return {"groups": flag(spec.group), "selection_rank": _narrow(spec)}


_MOST_SPLITS_LOG2 = 12

_LEAST_HDIM = 64
_FULL_HDIM = 256  # of which three stages of four warps take 192 KB of shared memory, so that one block fits
_APPEND = ("kw_cuda_append_plan", "kw_cuda_append_supports", "kw_cuda_append_plan_problem")
_ATTENTION = ("kw_cuda_attention_plan", "kw_cuda_attention_supports", "kw_cuda_attention_plan_problem")

SOURCES_OF: Mapping[Family, Source] = {
    Family.FWD: Source("forward/launch", "forward_launcher", _forward_config, _forward_traits),
    Family.BATCH_PREFILL: Source("forward/launch", "forward_launcher", _forward_config, _forward_traits),
    Family.FWD_SPLITKV: Source("split/launch", "decode_launcher", _split_config, _split_traits),
    Family.FWD_SPLITKV_COMBINE: Source("split/launch", "combine_launcher", _combine_config, _combine_traits),
    Family.BWD_DOT_DO_O: Source("backward/launch", "dot_launcher", _combine_config, _dot_traits),
    Family.BWD_DQ_DK_DV: Source("backward/launch", "gradient_launcher", _gradient_config, _gradient_traits),
    Family.FWD_APPENDKV: Source("append/launch", "append_launcher", _append_config, _append_traits),
}
"""The families that have kernels."""

OVERLAPPED = Source("backward/overlapped/launch", "overlapped_launcher", _overlapped_config, _overlapped_traits)
"""Gradients with the pipeline tma."""


def source_of(spec: AttentionSpec) -> Source:
    """Where the kernel of a spec comes from."""
    overlapped = spec.family is Family.BWD_DQ_DK_DV and spec.pipeline is Pipeline.TMA
    return OVERLAPPED if overlapped else SOURCES_OF[spec.family]


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """Variables of the template; the spec must have passed the rules."""
    spec = attention_spec(kernel)
    source = source_of(spec)
    plan, supports, plan_function = _APPEND if spec.family is Family.FWD_APPENDKV else _ATTENTION
    elements = ELEMENTS if spec.pipeline is Pipeline.TMA else PLAIN_ELEMENTS
    return {
        "header": source.header,
        "launcher": source.launcher,
        "element": elements[spec.dtype],
        "config": source.config(spec),
        "traits": {name: value for name, value in members(traits(spec)).items() if value != "0"},
        "op": f"KW_ATTENTION_OP_OF(KW_ATTENTION_{spec.family.upper()})",
        "plan": plan,
        "supports": supports,
        "plan_function": plan_function,
    }


def traits(spec: AttentionSpec) -> Traits:
    """What descriptors say of a kernel, but the number of threads, which its template knows."""
    return Traits(**{**_traits(spec), **source_of(spec).traits(spec)})


def _traits(spec: AttentionSpec) -> dict[str, Any]:
    dtype = spec.dtype.inputs
    return {
        "family": spec.family,
        **dict.fromkeys(("dtype_q", "dtype_kv", "dtype_o"), dtype),
        "hdim_q": spec.hdim_q,
        "hdim_v": spec.hdim_v,
        **{f"pad_{name}": getattr(spec.pad, name) for name in ("s", "sk")},
        # Smaller head dimensions are those of a tensor that ends earlier: no kernel is built for that.
        **{"pad_d": True, "pad_dv": True, "vector_q": VECTOR, "vector_v": VECTOR},
        **{f"tile_{name}": getattr(spec.tile, name) for name in ("m0", "n0", "k0", "n1", "k1")},
        "masks": frozenset(MASKS[spec.mask]),
        "biases": frozenset({spec.bias}),
        **({"dtype_bias": dtype} if spec.bias is Bias.ELEMENTWISE else {}),  # of ALiBi fp32
        "lses": flag(spec.lse),
        "sinks": flag(spec.sink),
        "dropouts": flag(False),
        "random_bytes": flag(False),
        "soft_caps": only(spec.logits_soft_cap),
        "dbiases": flag(False),
        "deterministics": BOTH,
        "min_seqlens_q": flag(False),
        "qscales": frozenset({QScale.NONE}),
        "max_splits": 1,
    }
