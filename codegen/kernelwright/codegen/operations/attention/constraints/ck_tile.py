"""What CK Tile's attention pipelines refuse to compile, compile wrongly or cannot do, as rules for kernels.

Sources name files of the pinned CK Tile (amd-aiter 0.1.7.post2.dev18) below ``ck_tile/ops/fmha``. Rules about head
dimension 128 are those of its own generator (example/ck_tile/01_fmha/codegen/ops/fmha_fwd.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.backends.ck_tile_waves import most_waves_per_simd
from kernelwright.codegen.dtypes import ELEMENT_BYTES
from kernelwright.codegen.operations.attention.arch_section import attention_section
from kernelwright.codegen.operations.attention.constraints.lds import lds_bytes, vector_elements
from kernelwright.codegen.operations.attention.constraints.report import wrong
from kernelwright.codegen.operations.attention.constraints.tiles import TILED, stages, tile_text
from kernelwright.codegen.operations.attention.kinds import (
    Bias,
    Family,
    KvLookupTable,
    OperandTypes,
    PageLayout,
    Pipeline,
    QScale,
)
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.violations import Violation, rules

_ROWS = (64, 128, 192, 256)
_PLAIN = (Pipeline.QR, Pipeline.QR_ASYNC, Pipeline.QS)
_TRLOAD = (Pipeline.QR_ASYNC_TRLOAD, Pipeline.QR_ASYNC_TRLOAD_V3)
_V3 = (Pipeline.V3, Pipeline.QR_ASYNC_TRLOAD_V3)
_ASYNC = (Pipeline.QR_ASYNC, *_TRLOAD)
_MAX_WORKGROUP = 1024
READS_PRODUCTS = TILED | {Family.BWD_DQ_DK_DV}
"""Families that multiply the result of a product."""

# K of the instruction behind a warp tile, where it differs from the warp tile's: 8-bit instructions run twice.
_INSTRUCTION_K = {(32, 32, 32): 16}


def _cdna_forward(spec: AttentionSpec, arch: Arch) -> bool:
    """Whether the rules about tiles of plain forward pipelines on CDNA apply."""
    plain = spec.family is Family.FWD and spec.pipeline in _PLAIN
    return plain and arch.wave_size == 64 and spec.dtype is not OperandTypes.FP32


def _is_128(spec: AttentionSpec) -> bool:
    return (spec.hdim_q, spec.hdim_v) == (128, 128)


def check_keys_128(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """With head dimension 128, plain forward pipelines of CDNA have tiles of 128 keys."""
    if _cdna_forward(spec, arch) and _is_128(spec) and spec.tile.n0 != 128:
        why = f"pipeline {spec.pipeline} has tiles of 128 keys for head dimension 128"
        yield from wrong("ck_tile.attention_keys_128", "tile.n0", spec.tile.n0, why, 128, 128)


def check_async_rows_128(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """With head dimension 128, pipeline qr_async of CDNA has tiles of 128 queries."""
    if _cdna_forward(spec, arch) and _is_128(spec) and spec.pipeline is Pipeline.QR_ASYNC and spec.tile.m0 != 128:
        why = "pipeline qr_async has tiles of 128 queries for head dimension 128"
        yield from wrong("ck_tile.attention_async_rows_128", "tile.m0", spec.tile.m0, why, 128, 128)


def check_rows(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """With other head dimensions, plain forward pipelines of CDNA have tiles of 64, 128, 192 or 256 queries."""
    if _cdna_forward(spec, arch) and not _is_128(spec) and spec.tile.m0 not in _ROWS:
        nearest = min(_ROWS, key=lambda item: abs(item - spec.tile.m0))
        why = f"pipeline {spec.pipeline} has no such tile"
        yield from wrong("ck_tile.attention_rows", "tile.m0", spec.tile.m0, why, ", ".join(map(str, _ROWS)), nearest)


def check_step_128(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """With head dimension 128, pipelines without asynchronous loads do not step by 64 on CDNA."""
    if _cdna_forward(spec, arch) and _is_128(spec) and spec.pipeline is not Pipeline.QR_ASYNC and spec.tile.k0 == 64:
        why = f"pipeline {spec.pipeline} does not step by 64 along head dimension 128"
        yield from wrong("ck_tile.attention_step_128", "tile.k0", 64, why, "16, 32, 128", 32)


def check_trload_keys(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """With head dimension 128, pipeline qr_async_trload has tiles of fewer or more than 128 keys."""
    if spec.pipeline is Pipeline.QR_ASYNC_TRLOAD and _is_128(spec) and spec.tile.n0 == 128:
        why = "a tile of 128 keys of head dimension 128 belongs to the other pipelines"
        yield from wrong("ck_tile.attention_trload_keys", "tile.n0", 128, why, "16, 32, 64, 96, 192, …", 64)


def check_v3_rows(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Pipelines v3 have tiles of 256 queries: 128 for each of the wave groups that take turns."""
    if spec.pipeline in _V3 and spec.tile.m0 != 256:
        why = "each of two wave groups computes 128 queries"
        yield from wrong("ck_tile.attention_v3_rows", "tile.m0", spec.tile.m0, why, 256, 256)


def check_chained_products(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Probabilities go from the accumulators of one product to the operands of the next in registers.

    WMMA of RDNA3 holds operands twice and accumulators once; the pinned CK Tile does not compile there.
    """
    if spec.family in READS_PRODUCTS and not attention_section(arch).chained_products:
        why = f"accumulators of {arch.name} are laid out otherwise than operands, which CK Tile does not convert"
        allowed = ", ".join(family for family in Family if family not in READS_PRODUCTS)
        yield from wrong("ck_tile.attention_chained_products", "family", spec.family, why, allowed, "another arch")


def check_lds(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """What a workgroup keeps in LDS must fit into the architecture's."""
    if spec.family not in TILED:
        return
    used = lds_bytes(spec, arch)
    if used > arch.lds_bytes:
        why = f"a workgroup would keep {used} bytes in LDS; {arch.name} has {arch.lds_bytes}"
        text, allowed = tile_text(spec.tile), f"at most {arch.lds_bytes} bytes"
        yield from wrong("ck_tile.attention_lds", "tile", text, why, allowed, "a smaller n0 or k0")


def check_waves_per_simd(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A SIMD cannot be asked to hold more waves than LDS has room for; the compiler fails.

    Without ``block_per_cu`` a kernel asks for as many as CK Tile wants, at most as many as there is room for.
    """
    used = lds_bytes(spec, arch) if spec.family in TILED else 0
    most = most_waves_per_simd(arch, used, _waves(spec))
    if 0 < used <= arch.lds_bytes and spec.block_per_cu > most:
        why = f"a workgroup of {_waves(spec)} waves keeps {used} bytes in LDS: a SIMD has room for {most} waves"
        allowed = f"-1, 1 to {most}"
        yield from wrong("ck_tile.attention_waves_per_simd", "block_per_cu", spec.block_per_cu, why, allowed, most)


def check_async_copies(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Asynchronous loads of K, k1 elements of n0 rows, take every work-item the same number of times and cover k0."""
    if spec.pipeline is not Pipeline.QR_ASYNC or spec.family not in TILED or arch.wave_size != 64:
        return
    rule, source = "ck_tile.attention_async_copies", "block_fmha_pipeline_qx_ks_vs_custom_policy.hpp"
    tile, unit = spec.tile, _waves(spec) * arch.wave_size * vector_elements(spec, arch)
    if tile.n0 * tile.k1 % unit:
        why = (
            f"{_waves(spec)} waves load {unit} elements of K at once, so n0 * k1 must be a multiple"
            f" (MakeKLdsStoreBlockDescriptor in {source})"
        )
        allowed = f"n0 * k1 a multiple of {unit}"
        yield from wrong(rule, "tile, wave", f"{tile.n0} x {tile.k1}", why, allowed, "a larger n0 or k1")
    if tile.k1 < tile.k0:
        why = f"loads of K are k1 wide, also where a step is longer: the rest of it is never loaded ({source})"
        yield from wrong(rule, "tile.k0, tile.k1", f"{tile.k0}, {tile.k1}", why, "k0 at most k1", tile.k1)


def check_async_padding(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """qr_async handles any number of queries and smaller head dimensions always (static_assert of the pipeline)."""
    if spec.pipeline is Pipeline.QR_ASYNC:
        for axis, padded in (("s", spec.pad.s), ("d", spec.pad.d), ("dv", spec.pad.dv)):
            if not padded:
                why = "pipeline qr_async is compiled with this padding only"
                yield from wrong("ck_tile.attention_async_padding", f"pad.{axis}", False, why, True, True)


def check_matrix_instructions(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """With head dimension 256, qr of CDNA schedules matrix instructions in groups of eight (its static_assert)."""
    if spec.pipeline is not Pipeline.QR or spec.tile.k0max != 256 or arch.wave_size != 64 or spec.family not in TILED:
        return
    wave, warp = stages(spec.wave)[0], stages(spec.warp_tile)[0]
    if not all(wave) or not all(warp):
        return
    tile = spec.tile
    step = _INSTRUCTION_K.get(warp, warp[2])
    count = (tile.m0 // warp[0]) * (tile.n0 // warp[1]) * (tile.k0 // step) // (wave[0] * wave[1])
    if count % 8:
        why = f"a wave has {count} matrix instructions in a step (block_fmha_pipeline_qr_ks_vs.hpp)"
        field = "tile, wave, warp_tile"
        yield from wrong(
            "ck_tile.attention_matrix_instructions", field, count, why, "multiples of 8", "a larger n0 or k0"
        )


def check_two_steps(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """qr multiplies a head dimension in two steps or more (its static_assert)."""
    if spec.pipeline is Pipeline.QR and spec.family is Family.FWD and 0 < spec.tile.k0max < 2 * spec.tile.k0:
        why = "pipeline qr takes at least two steps along the head dimension (block_fmha_pipeline_qr_ks_vs.hpp)"
        most = spec.tile.k0max // 2
        yield from wrong("ck_tile.attention_two_steps", "tile.k0", spec.tile.k0, why, f"at most {most}", most)


def check_waves_along_keys(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """In qr_nwarp_sshuffle waves share the keys of a tile and exchange scores through LDS (its static_assert)."""
    if spec.pipeline is not Pipeline.QR_NWARP_SSHUFFLE or spec.family not in TILED:
        return
    for axis in ("m0", "m1"):
        if getattr(spec.wave, axis) > 1:
            why = (
                "waves lie along the keys (block_fmha_fwd_splitkv_pipeline_nwarp_sshuffle_qr_ks_vs_default_policy.hpp)"
            )
            rule = "ck_tile.attention_waves_along_keys"
            yield from wrong(rule, f"wave.{axis}", getattr(spec.wave, axis), why, "1, with wave.n0 = wave.n1 waves", 1)


def check_combine(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """CK Tile's combine kernel was proven with 32 elements of a row, and up to 8 … 128 splits."""
    if spec.family is not Family.FWD_SPLITKV_COMBINE:
        return
    if spec.tile.n1 != 32:
        yield from wrong("ck_tile.attention_combine", "tile.n1", spec.tile.n1, "other tiles were not proven", 32, 32)
    if not 3 <= spec.max_splits_log2 <= 7:
        why = "kernels exist for 8 to 128 splits"
        yield from wrong("ck_tile.attention_combine", "max_splits_log2", spec.max_splits_log2, why, "3 to 7", 7)


def check_workgroup(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """A workgroup has at most 1024 work-items, and the same waves in every stage."""
    counts = [m * n * k for m, n, k in stages(spec.wave) if m * n * k]
    if counts and max(counts) * arch.wave_size > _MAX_WORKGROUP:
        most = _MAX_WORKGROUP // arch.wave_size
        why = f"{max(counts)} waves of {arch.wave_size} work-items; a workgroup has at most {_MAX_WORKGROUP}"
        yield from wrong(
            "ck_tile.attention_workgroup", "wave", tile_text(spec.wave), why, f"at most {most} waves", most
        )
    if len(set(counts)) > 1:
        why = "all waves of a workgroup take part in every stage"
        allowed = "the same number of waves in every stage"
        yield from wrong("ck_tile.attention_workgroup", "wave", tile_text(spec.wave), why, allowed, max(counts))


def check_features(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """The pinned CK Tile has no sinks, bf8 and block scales, and batch prefill from pages of one key in a list only."""
    rule, why = "ck_tile.attention_features", "the pinned CK Tile has no such kernel"
    if spec.dtype is OperandTypes.BF8:
        no_product = "the pinned CK Tile has no product of bf8 whose result is an operand of the next one"
        yield from wrong(rule, "dtype", spec.dtype, no_product, OperandTypes.FP8, OperandTypes.FP8)
    if spec.sink:
        yield from wrong(rule, "sink", True, why, False, False)
    if spec.qscale in (QScale.BLOCK_SCALE, QScale.KV_BLOCK_SCALE):
        yield from wrong(rule, "qscale", spec.qscale, why, "none, per_tensor", QScale.PER_TENSOR)
    if spec.family is Family.BATCH_PREFILL:
        if spec.page_size != 1:
            yield from wrong(rule, "page_size", spec.page_size, why, 1, 1)
        if spec.kv_lookup_table is not KvLookupTable.SGLANG:
            yield from wrong(rule, "kv_lookup_table", spec.kv_lookup_table, why, "sglang", "sglang")
        if spec.kv_memory_layout is not PageLayout.LINEAR:
            yield from wrong(rule, "kv_memory_layout", spec.kv_memory_layout, why, "linear", "linear")


def check_dropout(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """Dropout of 8-bit operands does not compile where warp tiles have 32 rows, as all of CDNA do.

    It draws in the layout of a product whose A is swizzled (MakeRandValTileDistribution, block/block_dropout.hpp),
    which CK Tile has of 16 bits alone.
    """
    if spec.dropout and ELEMENT_BYTES[spec.dtype.inputs] == 1 and spec.family in TILED and spec.warp_tile.m0 == 32:
        why = "CK Tile draws no random numbers for 8-bit operands in warp tiles of 32 rows (block_dropout.hpp)"
        yield from wrong("ck_tile.attention_dropout", "dropout", True, why, False, False)


def check_trload_features(spec: AttentionSpec, arch: Arch) -> Iterator[Violation]:
    """qr_async_trload was proven for batches of whole tiles without soft cap, bias, dropout and skipped requests."""
    if spec.family is not Family.FWD or spec.pipeline not in _TRLOAD:
        return
    rule, why = "ck_tile.attention_trload_features", f"pipeline {spec.pipeline} was not proven with it"
    for name in ("logits_soft_cap", "dropout", "skip_min_seqlen_q", "group"):
        if getattr(spec, name):
            yield from wrong(rule, name, True, why, False, False)
    if spec.bias is not Bias.NONE:
        yield from wrong(rule, "bias", spec.bias, why, Bias.NONE, Bias.NONE)


def _waves(spec: AttentionSpec) -> int:
    return max(1, spec.wave.m0 * spec.wave.n0 * spec.wave.k0)


RULES = rules(
    "ck_tile.attention_",
    (
        check_keys_128,
        check_async_rows_128,
        check_rows,
        check_step_128,
        check_trload_keys,
        check_v3_rows,
        check_chained_products,
        check_lds,
        check_waves_per_simd,
        check_async_copies,
        check_async_padding,
        check_matrix_instructions,
        check_two_steps,
        check_waves_along_keys,
        check_combine,
        check_workgroup,
        check_features,
        check_dropout,
        check_trload_features,
    ),
)
"""Every rule of this module, in the order in which violations are listed."""
