"""Attention through CK Tile: the C++ symbols of its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention.constraints.tiles import stages
from kernelwright.codegen.operations.attention.kinds import Bias, Family, Mask, OperandTypes, Pipeline, QScale
from kernelwright.codegen.operations.attention.spec import AttentionSpec, BwdTile, Tile, attention_spec
from kernelwright.codegen.templates import Template, read_template
from kernelwright.codegen.violations import SpecError

# None: attention has no such operand.
DTYPES: Mapping[DType, str | None] = {
    DType.FP32: "float",
    DType.FP16: "ck_tile::fp16_t",
    DType.BF16: "ck_tile::bf16_t",
    DType.FP8: "ck_tile::fp8_t",
    DType.BF8: "ck_tile::bf8_t",
    DType.INT8: None,
    DType.INT32: None,
}
BIASES: Mapping[Bias, str] = {Bias.NONE: "no_bias", Bias.ELEMENTWISE: "elementwise", Bias.ALIBI: "alibi"}

TREES = ("hip_attention",)


@dataclass(frozen=True)
class Source:
    """Where the kernels of a family come from.

    ``template`` renders a description for the struct ``kernel`` of ``header``; ``pipelines`` maps those that have a
    template to their C++ names, "" where the family has one only.
    """

    template: str
    header: str
    kernel: str
    pipelines: Mapping[Pipeline, str]


_FORWARD = (Pipeline.QR, Pipeline.QR_ASYNC, Pipeline.QS, Pipeline.QR_ASYNC_TRLOAD)
_SPLIT = (Pipeline.QR, Pipeline.QR_NWARP_SSHUFFLE)
SOURCES: Mapping[Family, Source] = {
    Family.FWD: Source("scores", "forward", "forward", {one: str(one) for one in _FORWARD}),
    Family.FWD_SPLITKV: Source("scores", "cached", "split", {one: f"split_{one}" for one in _SPLIT}),
    Family.FWD_SPLITKV_COMBINE: Source("combine", "cached", "combine", {Pipeline.COMBINE: ""}),
    Family.FWD_PAGEDKV: Source("scores", "cached", "paged", {Pipeline.QR_PAGEDKV: ""}),
    Family.FWD_APPENDKV: Source("append", "append", "append", {Pipeline.APPENDKV: ""}),
    Family.BATCH_PREFILL: Source("scores", "forward", "prefill", {Pipeline.QR_ASYNC: ""}),
    Family.BWD_DOT_DO_O: Source("gradient_rows", "gradient_rows", "dot", {Pipeline.BWD: ""}),
    Family.BWD_DQ_DK_DV: Source("gradients", "gradients", "gradients", {Pipeline.BWD: ""}),
    Family.BWD_CONVERT_DQ: Source("gradient_rows", "gradient_rows", "convert", {Pipeline.BWD: ""}),
}
FEWEST_SPLITS_LOG2 = 3
"""A combine kernel has a device function for each power of two from here on."""
PAGE_LIST, HEAD_SUM, CLEAR = "_page_list", "_head_sum", "_clear"
"""How the symbols of the device functions end that run beside others: batch_prefill's, and bwd_dq_dk_dv's."""
HELPERS = (PAGE_LIST, HEAD_SUM, CLEAR)


def template(kernel: Kernel) -> Template:
    """The template of a kernel's header; SpecError for a pipeline that has none."""
    spec = attention_spec(kernel)
    source = SOURCES[spec.family]
    if spec.pipeline not in source.pipelines:
        known = ", ".join(source.pipelines)
        raise SpecError(f"CK Tile has no template of a {spec.family} kernel with pipeline {spec.pipeline}; use {known}")
    return read_template("kernelwright.codegen.operations.attention", f"templates/ck_tile/{source.template}.hpp.jinja")


def splits_log2(spec: AttentionSpec) -> range:
    """Logarithms of the numbers of splits that a combine kernel has a device function for."""
    return range(FEWEST_SPLITS_LOG2, spec.max_splits_log2 + 1)


def context(kernel: Kernel) -> Mapping[str, object]:
    """Symbols of the templates below ``templates/ck_tile``."""
    spec = attention_spec(kernel)
    source = SOURCES[spec.family]
    eight_bits = spec.dtype.inputs in (DType.FP8, DType.BF8)
    function = f"{kernel.symbol}_{source.kernel}"
    return {
        "header": source.header,
        "kernel": source.kernel,
        "pipeline": source.pipelines.get(spec.pipeline, ""),
        "dtype_in": DTYPES[spec.dtype.inputs],
        "dtype_out": DTYPES[spec.dtype.output],
        "dtype_bias": "float" if eight_bits and spec.dtype is not OperandTypes.BF8 else DTYPES[spec.dtype.inputs],
        "tile": ", ".join(str(getattr(spec.tile, axis)) for axis in Tile.model_fields),
        "bwd_tile": ", ".join(str(getattr(spec.bwd_tile, axis)) for axis in BwdTile.model_fields),
        "waves": [", ".join(map(str, stage)) for stage in stages(spec.wave)],
        "warp_tiles": [", ".join(map(str, stage)) for stage in stages(spec.warp_tile)],
        "bias_kind": BIASES[spec.bias],
        "masked": spec.mask is not Mask.NONE,
        "scaled": spec.qscale is not QScale.NONE or spec.static_quant,
        "paged": spec.paged_kv,
        "row_hdim": spec.hdim_v if spec.family is Family.BWD_DOT_DO_O else spec.hdim_q,
        "splits_log2": list(splits_log2(spec)),
        "function": function,
        "page_list": f"{kernel.symbol}{PAGE_LIST}",
        "head_sum": f"{kernel.symbol}{HEAD_SUM}",
        "clear": f"{kernel.symbol}{CLEAR}",
        "facts": f"{kernel.symbol}_facts",
    }
