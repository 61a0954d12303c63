"""The words that ``variant`` may be: for each, its operation and the values of attributes that it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import Layout
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.gemm.kernel_sets import DTYPES
from kernelwright.codegen.violations import SpecError, closest

Axes = Mapping[str, Sequence[Any]]
"""Values by attribute of a kernel."""


@dataclass(frozen=True)
class Variant:
    """What a word stands for: kernels of ``operation`` whose attributes have one of the values of ``axes``."""

    operation: str
    axes: Axes = field(default_factory=dict)


def _of(operation: str, attribute: str, words: Mapping[str, Sequence[str]]) -> dict[str, Variant]:
    return {word: Variant(operation, {attribute: values}) for word, values in words.items()}


_GEMM = ("standard", "preshuffle", "multi_d", "stream_k", "batched", "grouped")
_FMHA = ("fwd", "fwd_splitkv", "fwd_splitkv_combine", "fwd_pagedkv", "fwd_appendkv", "batch_prefill")
_FMHA_BWD = ("bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq")
_SPLIT = ("fwd_splitkv", "fwd_splitkv_combine")
_CONV = {"forward": "forward", "bwd_data": "backward_data", "bwd_weight": "backward_weight"}
# The operations, their own words, and what CK Tile's engine calls them.
VARIANTS: Mapping[str, Variant] = {
    **{name: Variant(name) for name in ("gemm", "convolution", "attention")},
    **_of("gemm", "variant", {word: [word] for word in _GEMM}),
    **_of("gemm", "variant", {f"gemm_{word}": [word] for word in _GEMM}),
    **_of("gemm", "variant", {"gemm_universal": ["standard"], "gemm_streamk": ["stream_k"]}),
    "grouped_conv": Variant("convolution"),
    **_of("convolution", "direction", {word: [direction] for word, direction in _CONV.items()}),
    **_of("convolution", "direction", {direction: [direction] for direction in _CONV.values()}),
    **_of("convolution", "variant", {"forward_depthwise": ["forward_depthwise"]}),
    "fmha": Variant("attention"),
    **_of("attention", "family", {word: [word] for word in (*_FMHA, *_FMHA_BWD)}),
    **_of("attention", "family", {f"fmha_{word}": [word] for word in (*_FMHA, *_FMHA_BWD)}),
    **_of("attention", "family", {"bwd": _FMHA_BWD, "fmha_bwd": _FMHA_BWD}),
    **_of("attention", "family", {"splitkv": _SPLIT, "pagedkv": ["fwd_pagedkv"], "appendkv": ["fwd_appendkv"]}),
}


def variant(word: object) -> Variant:
    """The variant called ``word``; SpecError with the known words otherwise."""
    if not isinstance(word, str) or word not in VARIANTS:
        hint = closest(str(word), VARIANTS)
        raise SpecError(f"variant = {word!r}{hint}; allowed: {', '.join(VARIANTS)}")
    return VARIANTS[word]


def pool(operation_name: str, axes: Axes, arch: Arch) -> tuple[str, ...]:
    """The kernel sets that together hold every kernel of the operation's tables that ``axes`` could leave."""
    if operation_name == "attention":
        return ("fmha_all",)
    if operation_name != "gemm":
        return operation(operation_name).sets.names()
    dtypes = [str(dtype) for dtype in DTYPES if str(dtype) in axes.get("dtype", DTYPES)]
    layouts = [str(layout) for layout in Layout if str(layout) in axes.get("layout", tuple(Layout))]
    preselected = tuple(f"{dtype}_{layout}_all" for dtype in dtypes for layout in layouts)
    return ("essential", "default", *preselected)
