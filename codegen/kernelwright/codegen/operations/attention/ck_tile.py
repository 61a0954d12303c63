"""Attention through CK Tile: the C++ symbols of its kernels and the values of their descriptors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelwright.arch import Arch
from kernelwright.codegen.c_names import members
from kernelwright.codegen.dtypes import ELEMENT_BYTES, DType
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention.arch_section import attention_section
from kernelwright.codegen.operations.attention.constraints.families import READS
from kernelwright.codegen.operations.attention.constraints.tiles import stages
from kernelwright.codegen.operations.attention.kinds import (
    Bias,
    Constraint,
    Family,
    Mask,
    PageLayout,
    PageTable,
    Pipeline,
    QScale,
    Rope,
)
from kernelwright.codegen.operations.attention.rules.structs import BOTH, Traits, flag, only
from kernelwright.codegen.operations.attention.spec import AttentionSpec, BwdTile, Tile, attention_spec
from kernelwright.codegen.symbols import CK_TILE_DTYPES, part
from kernelwright.codegen.templates import Template, read_template, rendered
from kernelwright.codegen.trees import launcher_files
from kernelwright.codegen.violations import SpecError

# None: attention has no such operand.
DTYPES = part(CK_TILE_DTYPES, DType.FP32, DType.FP16, DType.BF16, DType.FP8, DType.BF8)
BIASES: Mapping[Bias, str] = {Bias.NONE: "no_bias", Bias.ELEMENTWISE: "elementwise", Bias.ALIBI: "alibi"}

TREES = ("hip_attention",)
SOURCES = launcher_files("ck_tile", "attention", "launch", "forward", "gradients", "append")
"""Launcher sources that a library with attention kernels contains."""


def takes_stock_headers(kernel: Kernel, arch: Arch) -> bool:
    """Kernels that have another schedule with rewritten headers, as the architecture says.

    All are right; users get the code that the wheel's own headers give.
    """
    spec, stock = attention_spec(kernel), attention_section(arch).stock_headers
    return ("gradients" in stock and spec.family is Family.BWD_DQ_DK_DV) or ("dropout" in stock and spec.dropout)


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
FAMILIES: Mapping[Family, Source] = {
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
    source = FAMILIES[spec.family]
    if spec.pipeline not in source.pipelines:
        known = ", ".join(source.pipelines)
        raise SpecError(f"CK Tile has no template of a {spec.family} kernel with pipeline {spec.pipeline}; use {known}")
    return read_template("kernelwright.codegen.operations.attention", f"templates/ck_tile/{source.template}.hpp.jinja")


def splits_log2(spec: AttentionSpec) -> range:
    """Logarithms of the numbers of splits that a combine kernel has a device function for."""
    return range(FEWEST_SPLITS_LOG2, spec.max_splits_log2 + 1)


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """Variables of the templates of a library: the header's text, and what the descriptor says."""
    spec = attention_spec(kernel)
    made = symbols(kernel)
    variables = {"name": kernel.name, "arch": kernel.arch, "symbol": kernel.symbol, "spec": spec}
    return {
        **made,
        **_descriptor(spec, arch),
        "header_text": rendered(template(kernel), {**made, **variables}),
    }


def symbols(kernel: Kernel) -> Mapping[str, object]:
    """Symbols of the templates of families below ``templates/ck_tile``."""
    spec = attention_spec(kernel)
    source = FAMILIES[spec.family]
    function = f"{kernel.symbol}_{source.kernel}"
    return {
        "header": source.header,
        "kernel": source.kernel,
        "pipeline": source.pipelines.get(spec.pipeline, ""),
        "dtype_in": DTYPES[spec.dtype.inputs],
        "dtype_out": DTYPES[spec.dtype.output],
        "dtype_bias": DTYPES[_bias(spec)],
        "tile": [getattr(spec.tile, axis) for axis in Tile.model_fields],
        "bwd_tile": [getattr(spec.bwd_tile, axis) for axis in BwdTile.model_fields],
        "waves": stages(spec.wave),
        "warp_tiles": stages(spec.warp_tile),
        "bias_kind": BIASES[spec.bias],
        "masked": spec.mask is not Mask.NONE,
        "scaled": _scaled(spec),
        "paged": spec.paged_kv,
        "row_hdim": spec.hdim_v if spec.family is Family.BWD_DOT_DO_O else spec.hdim_q,
        "splits_log2": list(splits_log2(spec)),
        "function": function,
        "page_list": f"{kernel.symbol}{PAGE_LIST}",
        "head_sum": f"{kernel.symbol}{HEAD_SUM}",
        "clear": f"{kernel.symbol}{CLEAR}",
        "facts": f"{kernel.symbol}_facts",
    }


def _bias(spec: AttentionSpec) -> DType:
    """The type of an elementwise bias, and of cosines and sines."""
    return DType.FP32 if ELEMENT_BYTES[spec.dtype.inputs] == 1 else spec.dtype.inputs


def _scaled(spec: AttentionSpec) -> bool:
    """Do operands have factors? Such kernels serve problems without, too."""
    return spec.qscale is not QScale.NONE or spec.static_quant


def _qscales(spec: AttentionSpec) -> frozenset[QScale]:
    return frozenset({QScale.NONE, QScale.PER_TENSOR} if _scaled(spec) else {QScale.NONE})


_WORD = 4  # bytes that vectors in memory are aligned to
_ASYNC = (Pipeline.QR_ASYNC, Pipeline.QR_ASYNC_TRLOAD)
_ASYNC_VECTOR = 8
_COMBINE_WAVES, _ROW_WORK_ITEMS = 4, 256
_MOST_SPLITS_LOG2 = 7


def traits(spec: AttentionSpec, arch: Arch) -> Traits:
    """What descriptors say of a kernel."""
    family = spec.family
    backward = family is Family.BWD_DQ_DK_DV
    tile = spec.bwd_tile if backward else spec.tile
    split = family is Family.FWD_SPLITKV
    dtype, vector = spec.dtype.inputs, _ASYNC_VECTOR if spec.pipeline in _ASYNC else 1
    with_bias = spec.bias is Bias.ELEMENTWISE or spec.rope is not Rope.NONE
    return Traits(
        family=family,
        dtype_q=dtype,
        dtype_kv=dtype,
        dtype_o=spec.dtype.output,
        dtype_bias=_bias(spec) if with_bias else None,
        hdim_q=spec.hdim_q,
        hdim_v=spec.hdim_v,
        vector_q=max(vector, spec.hdim_q_alignment),
        vector_v=max(vector, spec.hdim_v_alignment),
        pad_s=spec.pad.s,
        pad_sk=spec.pad.sk,
        pad_d=spec.pad.d,
        pad_dv=spec.pad.dv,
        tile_m0=_combine_rows(spec, arch) if family is Family.FWD_SPLITKV_COMBINE else tile.m0,
        tile_n0=tile.n0,
        tile_k0=tile.k0,
        tile_n1=spec.tile.n1,
        tile_k1=tile.k1,
        groups=BOTH if family is Family.BATCH_PREFILL else only(spec.group),
        masks=frozenset({Mask.NONE if spec.mask is Mask.NONE else Mask.GENERIC}),
        biases=frozenset({spec.bias}),
        lses=flag(spec.lse and not split),
        sinks=flag(False),
        dropouts=only(spec.dropout),
        random_bytes=BOTH if spec.dropout and not backward else only(spec.store_randval),
        soft_caps=only(spec.logits_soft_cap),
        kv_lengths=_lengths(spec),
        dbiases=only(spec.dbias),
        deterministics=flag(spec.deterministic),
        min_seqlens_q=flag(spec.skip_min_seqlen_q),
        qscales=_qscales(spec),
        page_tables=_page_tables(spec),
        page_layouts=frozenset({PageLayout.LINEAR}),
        ropes=frozenset({spec.rope}),
        max_splits=1 << (_MOST_SPLITS_LOG2 if split else spec.max_splits_log2),
        leaves_splits=only(split),
        leaves_dq=(0 if spec.max_seq_len_q else 2 if spec.deterministic else 1) if backward else 0,
        max_seqlen_q=spec.max_seq_len_q,
        threads=_threads(spec, arch),
        blocks_per_cu=max(0, spec.block_per_cu),
        few_blocks=int(spec.constraint_tag is Constraint.FEW_BLOCKS),
    )


def alignment(spec: AttentionSpec) -> int:
    """Bytes that strides of tensors are multiples of."""
    element, backward = ELEMENT_BYTES[spec.dtype.inputs], spec.family is Family.BWD_DQ_DK_DV
    plain = spec.pad.d and spec.pad.dv and spec.pad.sk and spec.pipeline not in _ASYNC
    return element if plain and not (backward and spec.bias is Bias.ELEMENTWISE) else max(element, _WORD)


def _descriptor(spec: AttentionSpec, arch: Arch) -> Mapping[str, object]:
    family = spec.family
    backward = family is Family.BWD_DQ_DK_DV
    combine = family is Family.FWD_SPLITKV_COMBINE
    prefill = family is Family.BATCH_PREFILL
    return {
        "traits": members(traits(spec, arch)),
        "functions": [str(log) for log in splits_log2(spec)] if combine else [""],
        "aligned": alignment(spec),
        "beside": PAGE_LIST if prefill else HEAD_SUM if backward or "rope" in READS[family] else "",
        "clears": backward,
    }


def _combine_rows(spec: AttentionSpec, arch: Arch) -> int:
    """A wave loads 16 bytes of fp32 with each work-item (BlockFmhaSplitKVCombinePipelineTileSizes)."""
    return arch.wave_size * 4 // spec.tile.n1


def _threads(spec: AttentionSpec, arch: Arch) -> int:
    waves = {Family.FWD_SPLITKV_COMBINE: _COMBINE_WAVES, Family.BWD_DOT_DO_O: max(1, spec.tile.m0 // arch.wave_size)}
    if spec.family in (Family.FWD_APPENDKV, Family.BWD_CONVERT_DQ):
        return _ROW_WORK_ITEMS
    one = spec.wave
    return arch.wave_size * waves.get(spec.family, one.m0 * one.n0 * one.k0)


def _lengths(spec: AttentionSpec) -> frozenset[bool]:
    """Kernels of batches without a cache take all keys; a block table comes with lengths."""
    if spec.family is Family.BATCH_PREFILL or (spec.family is Family.FWD_SPLITKV and not spec.paged_kv):
        return BOTH
    return flag(spec.group) if spec.family is Family.FWD else only(spec.paged_kv)


def _page_tables(spec: AttentionSpec) -> frozenset[PageTable]:
    if spec.family is Family.BATCH_PREFILL:
        return frozenset({PageTable.BLOCK, PageTable.LIST})
    return frozenset({PageTable.BLOCK if spec.paged_kv else PageTable.NONE})
