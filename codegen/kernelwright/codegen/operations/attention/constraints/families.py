"""Rules of single families: which fields each reads, and what its kernels need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES
from kernelwright.codegen.operations.attention.constraints.report import extent_text, one_of, wrong
from kernelwright.codegen.operations.attention.kinds import Bias, Family, Mask, Rope
from kernelwright.codegen.operations.attention.spec import AttentionSpec, BwdTile, Stages, Tile
from kernelwright.codegen.violations import Violation

_ALL = (
    *("op", "family", "dtype", "hdim_q", "hdim_v", "v_layout", "pipeline", "pad"),
    *("block_per_cu", "num_wave_groups", "constraint_tag"),
)
_SCORES = ("group", "logits_soft_cap", "mask", "bias", "lse")
_TILED = ("tile", "wave", "warp_tile")
READS: Mapping[Family, frozenset[str]] = {
    family: frozenset((*_ALL, *fields))
    for family, fields in {
        Family.FWD: (*_SCORES, *_TILED, "dropout", "qscale", "skip_min_seqlen_q", "sink", "trload"),
        Family.FWD_SPLITKV: (*_SCORES, *_TILED, "paged_kv", "static_quant", "sink"),
        Family.FWD_SPLITKV_COMBINE: ("group", "lse", "static_quant", "tile", "max_splits_log2"),
        Family.FWD_PAGEDKV: (*_SCORES, *_TILED, "paged_kv", "static_quant", "skip_min_seqlen_q", "sink"),
        Family.FWD_APPENDKV: ("group", "paged_kv", "rope", "tile"),
        Family.BATCH_PREFILL: (
            *(*_SCORES, *_TILED, "dropout", "qscale", "sink"),
            *("paged_kv", "page_size", "kv_memory_layout", "kv_lookup_table"),
        ),
        Family.BWD_DOT_DO_O: ("group", "tile"),
        Family.BWD_DQ_DK_DV: (
            *("group", "mask", "bias", "dbias", "dropout", "store_randval", "deterministic", "trload"),
            *("bwd_tile", "wave", "warp_tile", "max_seq_len_q", "hdim_q_alignment", "hdim_v_alignment"),
        ),
        Family.BWD_CONVERT_DQ: ("group", "deterministic", "tile"),
    }.items()
}
"""The fields that the kernels of a family read; the others keep their defaults."""

PADS: Mapping[Family, str] = {
    Family.FWD_SPLITKV_COMBINE: "s dv",
    Family.BWD_DOT_DO_O: "s dv",
    Family.BWD_DQ_DK_DV: "d dv",
    Family.BWD_CONVERT_DQ: "s d",
}
"""What of the padding families choose that do not choose all of it; the rest is handled always."""

# Extents that a family's tile has; all others are 0.
_EXTENTS: Mapping[Family, tuple[str, ...]] = {
    Family.FWD_SPLITKV_COMBINE: ("n1",),
    Family.FWD_APPENDKV: ("m0", "n0", "k0", "n1"),
    Family.BWD_DOT_DO_O: ("m0",),
    Family.BWD_CONVERT_DQ: ("m0", "n0"),
    Family.BWD_DQ_DK_DV: (),
}
_UNREAD: Mapping[Family, tuple[tuple[str, Any], ...]] = {
    family: tuple(
        (name, info.default) for name, info in AttentionSpec.model_fields.items() if name not in READS[family]
    )
    for family in Family
}
_AXES = ("s", "sk", "d", "dv")
_ALWAYS_PADDED = {family: tuple(axis for axis in _AXES if axis not in pads.split()) for family, pads in PADS.items()}


def check_family_fields(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A field that the family's kernels do not read keeps its default, so that one kernel has one spec."""
    for name, default in _UNREAD[spec.family]:
        value = getattr(spec, name)
        if value != default and name not in ("tile", "bwd_tile"):  # which attention.tile_length checks
            shown = extent_text(value.model_dump().values()) if isinstance(value, Stages) else value
            plain = "zeros" if isinstance(default, Stages) else default
            yield from wrong("attention.family_fields", name, shown, f"{spec.family} does not read it", plain, plain)
    for axis in _ALWAYS_PADDED.get(spec.family, ()):
        if not getattr(spec.pad, axis):
            why = f"{spec.family} handles any length there"
            yield from wrong("attention.family_fields", f"pad.{axis}", False, why, True, True)


def check_tile_length(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A family's tile has its own extents: nine for bwd_dq_dk_dv, up to six for the others."""
    backward = spec.family is Family.BWD_DQ_DK_DV
    needed = _EXTENTS.get(spec.family, tuple(Tile.model_fields))
    yield from _lengths(spec, "tile", spec.tile, needed)
    yield from _lengths(spec, "bwd_tile", spec.bwd_tile, tuple(BwdTile.model_fields) if backward else ())
    stages = 3 if backward else 2 if "wave" in READS[spec.family] else 0
    for name, value in (("wave", spec.wave), ("warp_tile", spec.warp_tile)) if stages else ():
        yield from _lengths(spec, name, value, tuple(Stages.model_fields)[: 3 * stages])


def _lengths(spec: AttentionSpec, field: str, value: Any, needed: tuple[str, ...]) -> Iterator[Violation]:
    for axis in type(value).model_fields:
        extent = getattr(value, axis)
        optional = spec.family is Family.BWD_CONVERT_DQ and axis == "n0"
        if optional or bool(extent) == (axis in needed):
            continue
        why = f"{spec.family} has {'this extent' if axis in needed else 'no such extent'}"
        allowed = "more than 0" if axis in needed else "0"
        yield from wrong("attention.tile_length", f"{field}.{axis}", extent, why, allowed, 16 if axis in needed else 0)


def check_dbias(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Only an elementwise bias has a gradient, and random bytes exist only with dropout."""
    if spec.dbias and spec.bias is not Bias.ELEMENTWISE:
        why = "only an elementwise bias has a gradient"
        yield from wrong("attention.dbias", "dbias, bias", spec.bias, why, "dbias with an elementwise bias", False)
    if spec.store_randval and not spec.dropout:
        why = "without dropout there are no random bytes"
        yield from wrong("attention.dbias", "store_randval, dropout", True, why, False, False)


def check_batch_prefill(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Batch prefill reads ragged requests (group mode) out of pages whose size is a power of two."""
    if spec.family is not Family.BATCH_PREFILL:
        return
    if not spec.group:
        yield from wrong("attention.batch_prefill", "group", False, "requests are ragged", True, True)
    if not spec.paged_kv:
        yield from wrong("attention.batch_prefill", "paged_kv", False, "K and V are in pages", True, True)
    if spec.page_size < 1 or spec.page_size & (spec.page_size - 1):
        nearest = 1 << max(spec.page_size, 1).bit_length() - 1
        why = "a key's page and place are found by shifts"
        yield from wrong("attention.batch_prefill", "page_size", spec.page_size, why, "1, 2, 4, …", nearest)


def check_appendkv(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """New keys are appended in batch mode."""
    if spec.family is Family.FWD_APPENDKV and spec.group:
        why = "every request appends the same number of keys"
        yield from wrong("attention.appendkv", "group", True, why, False, False)


def check_rope_dtype(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Rotary embedding turns keys before they become 8-bit numbers: turned ones would be rounded a second time."""
    if spec.rope is not Rope.NONE and ELEMENT_BYTES[spec.dtype.inputs] == 1:
        why = f"turned {spec.dtype} keys would be rounded a second time, without a factor; turn them before"
        yield from wrong("attention.rope_dtype", "rope, dtype", spec.rope, why, Rope.NONE, Rope.NONE)


def check_combine(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A workgroup combines n1 elements of rows, which divide the head dimension, of up to 2^max_splits_log2 splits."""
    if spec.family is not Family.FWD_SPLITKV_COMBINE:
        return
    n1 = spec.tile.n1
    if n1 and spec.hdim_v % n1:
        why = "tiles of n1 elements must cover the head dimension of V exactly"
        divisors = [item for item in range(8, spec.hdim_v + 1, 8) if spec.hdim_v % item == 0] or [spec.hdim_v]
        nearest = min(divisors, key=lambda item: abs(item - n1))
        yield from wrong("attention.combine", "tile.n1", n1, why, ", ".join(map(str, divisors)), nearest)
    if not spec.max_splits_log2:
        yield from wrong("attention.combine", "max_splits_log2", 0, "there is nothing to combine", "1 or more", 7)


def check_pagedkv(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """The family is for K and V in pages; others are served by fwd."""
    if spec.family is Family.FWD_PAGEDKV and not spec.paged_kv:
        why = "K and V are in pages; family fwd is for those that are not"
        yield from wrong("attention.pagedkv", "paged_kv", False, why, True, True)


def check_splitkv(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Parts are put together by their sums of exponentials, which are therefore stored."""
    if spec.family is Family.FWD_SPLITKV and not spec.lse:
        why = "parts are put together by the logarithms of their sums"
        yield from wrong("attention.splitkv", "lse", False, why, True, True)


def check_max_seq_len_q(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A kernel for few queries computes dQ in one piece: one tile of queries, no mask, batch mode."""
    if not spec.max_seq_len_q or spec.family is not Family.BWD_DQ_DK_DV:
        return
    m0 = spec.bwd_tile.m0
    if spec.max_seq_len_q != m0:
        why = "such a kernel handles one tile of queries"
        yield from wrong("attention.max_seq_len_q", "max_seq_len_q", spec.max_seq_len_q, why, f"0, {m0}", m0)
    if spec.group:
        why = "in group mode the number of queries is not known before"
        yield from wrong("attention.max_seq_len_q", "max_seq_len_q, group", True, why, False, False)
    if spec.mask is not Mask.NONE:
        why = "kernels for few queries have no mask"
        yield from wrong("attention.max_seq_len_q", "max_seq_len_q, mask", spec.mask, why, Mask.NONE, Mask.NONE)


def check_bwd_padding(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A padded head dimension of the backward pass is a multiple of 8 or any number; another one of the tile."""
    if spec.family is not Family.BWD_DQ_DK_DV:
        return
    for axis, padded, value in (
        ("q", spec.pad.d, spec.hdim_q_alignment),
        ("v", spec.pad.dv, spec.hdim_v_alignment),
    ):
        allowed = (1, 8) if padded else (0,)
        if value not in allowed:
            why = f"the head dimension is {'padded' if padded else 'that of the tile'}"
            yield from one_of("attention.bwd_padding", f"hdim_{axis}_alignment", value, allowed, why)
    if spec.hdim_q_alignment == 8 and spec.hdim_v_alignment != 8 and spec.pad.d:
        why = "with vectors of 8 along Q's head dimension, V's is read so too"
        value = spec.hdim_v_alignment
        yield from wrong("attention.bwd_padding", "hdim_v_alignment, pad, hdim_q_alignment", value, why, 8, 8)
    if spec.trload and 1 in (spec.hdim_q_alignment, spec.hdim_v_alignment):
        why = "transposing reads take vectors of 8"
        yield from wrong("attention.bwd_padding", "hdim_q_alignment, hdim_v_alignment, pad", 1, why, "0, 8", 8)
    if spec.trload and spec.hdim_q_alignment != spec.hdim_v_alignment:
        why = "transposing reads treat both head dimensions alike"
        pair = f"{spec.hdim_q_alignment} and {spec.hdim_v_alignment}"
        yield from wrong("attention.bwd_padding", "hdim_q_alignment, hdim_v_alignment, pad", pair, why, "0, 8", 8)


CHECKS = (
    check_family_fields,
    check_tile_length,
    check_dbias,
    check_batch_prefill,
    check_appendkv,
    check_rope_dtype,
    check_combine,
    check_pagedkv,
    check_splitkv,
    check_max_seq_len_q,
    check_bwd_padding,
)
"""Every check of this module, in the order in which violations are listed."""
