from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.attention.complete import complete
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.selecting.nearest import nearest_legal
from kernelwright.codegen.selecting.specs import build_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import SpecError, Violation

ATTENTION = operation("attention")
FWD = {"family": "fwd", "dtype": "bf16", "hdim": 128}
FWD64 = {**FWD, "hdim": 64}
FWD256 = {**FWD, "hdim": 256}
FWD32 = {**FWD, "hdim": 32, "pipeline": "qr_async"}  # steps of 16, loads of 32
FP8 = {**FWD, "dtype": "fp8bf16"}
SPLITKV = {"family": "fwd_splitkv", "dtype": "bf16", "hdim": 128}
COMBINE = {"family": "fwd_splitkv_combine", "dtype": "bf16", "hdim": 128}
PAGEDKV = {"family": "fwd_pagedkv", "dtype": "bf16", "hdim": 128}
APPENDKV = {"family": "fwd_appendkv", "dtype": "bf16", "hdim": 128}
PREFILL = {"family": "batch_prefill", "dtype": "bf16", "hdim": 128}
FEW = {**PREFILL, "tile": [64, 128, 64, 128, 64, 128], "wave": [4, 1, 1, 4, 1, 1], "warp_tile": [16] * 6}
BWD = {"family": "bwd_dq_dk_dv", "dtype": "bf16", "hdim": 128}
DOT = {"family": "bwd_dot_do_o", "dtype": "bf16", "hdim": 128}
TRLOAD = {**FWD, "pipeline": "qr_async_trload"}
HALF = {**FWD, "pipeline": "qr", "bias": "elementwise"}
ALONG_KEYS = {
    **{"family": "fwd_splitkv", "dtype": "bf16", "hdim": 128, "pipeline": "qr_nwarp_sshuffle"},
    **{"tile": [64, 128, 32, 128, 32, 128], "wave": [1, 4, 1, 1, 4, 1], "warp_tile": [16] * 6},
}
V3 = {**TRLOAD, "pipeline": "qr_async_trload_v3"}

# Rule → architecture, a legal kernel as a partial spec, and changes of the whole spec that break the rule.
CASES: tuple[tuple[str, str, Mapping[str, Any], Mapping[str, Any]], ...] = (
    ("attention.dtype", "gfx90a", FWD, {"dtype": "fp8"}),
    ("attention.bwd_dtype", "gfx942", BWD, {"dtype": "fp8"}),
    ("attention.family", "sm_90a", FWD, {"family": "fwd_pagedkv"}),
    ("attention.pipeline", "gfx942", FWD, {"pipeline": "appendkv"}),
    ("attention.pipeline", "gfx1201", FWD, {"pipeline": "qr_async"}),
    ("attention.pipeline", "gfx942", PREFILL, {"pipeline": "qr"}),
    ("attention.v3", "gfx942", FWD, {"pipeline": "v3"}),
    ("attention.trload", "gfx942", FWD, {"pipeline": "qr_async_trload"}),
    ("attention.trload", "gfx942", BWD, {"trload": True}),
    ("attention.trload_pipeline", "gfx950", FWD, {"trload": True}),
    ("attention.trload_pipeline", "gfx950", TRLOAD, {"trload": False}),
    ("attention.hdim", "gfx942", FWD, {"hdim_q": 112}),
    ("attention.hdim_multiple", "gfx942", FWD, {"hdim_v": 100}),
    ("attention.hdim_192_128", "gfx942", {**FWD, "hdim_q": 192, "hdim_v": 128, "hdim": None}, {"dropout": True}),
    ("attention.hdim_192_128", "gfx942", {**FWD, "hdim_q": 192, "hdim_v": 128, "hdim": None}, {"bias": "alibi"}),
    ("attention.soft_cap_bias", "gfx942", FWD, {"logits_soft_cap": True, "bias": "alibi"}),
    ("attention.trload_hdim", "gfx950", TRLOAD, {"hdim_q": 96, "hdim_v": 96}),
    ("attention.mask", "gfx942", FWD, {"mask": "top_left"}),
    ("attention.group_padding", "gfx942", FWD, {"group": True, "pad": {"s": True, "sk": False, "d": True, "dv": True}}),
    ("attention.block_per_cu", "gfx942", FWD, {"block_per_cu": 0}),
    ("attention.num_wave_groups", "gfx942", FWD, {"num_wave_groups": 2}),
    ("attention.num_wave_groups", "gfx942", FWD, {"num_wave_groups": 0}),
    ("attention.v_layout", "gfx942", FWD, {"v_layout": "col"}),
    ("attention.quantised", "gfx942", FWD, {"qscale": "per_tensor"}),
    ("attention.quantised", "gfx942", SPLITKV, {"static_quant": True}),
    ("attention.family_fields", "gfx942", FWD, {"rope": "half"}),
    ("attention.family_fields", "gfx942", APPENDKV, {"logits_soft_cap": True}),
    ("attention.family_fields", "gfx942", DOT, {"pad": {"s": True, "sk": True, "d": False, "dv": True}}),
    ("attention.family_fields", "gfx942", DOT, {"wave": {"m0": 4}}),
    ("attention.tile_length", "gfx942", FWD, {"bwd_tile": {"m0": 16}}),
    ("attention.tile_length", "gfx942", BWD, {"bwd_tile": {"m0": 16, "n0": 128}}),
    ("attention.tile_length", "gfx942", FWD, {"wave": {"m0": 4, "n0": 1, "k0": 1}}),
    ("attention.tile_length", "gfx942", DOT, {"tile": {"m0": 64, "n0": 64}}),
    ("attention.dbias", "gfx942", BWD, {"dbias": True}),
    ("attention.dbias", "gfx942", BWD, {"store_randval": True}),
    ("attention.batch_prefill", "gfx942", PREFILL, {"group": False}),
    ("attention.batch_prefill", "gfx942", PREFILL, {"paged_kv": False}),
    ("attention.batch_prefill", "gfx942", PREFILL, {"page_size": 12}),
    ("attention.appendkv", "gfx942", APPENDKV, {"group": True}),
    ("attention.rope_dtype", "gfx942", {**APPENDKV, "dtype": "fp8"}, {"rope": "half"}),
    ("attention.combine", "gfx942", COMBINE, {"tile": {"n1": 48}}),
    ("attention.combine", "gfx942", COMBINE, {"max_splits_log2": 0}),
    ("attention.pagedkv", "gfx942", PAGEDKV, {"paged_kv": False}),
    ("attention.splitkv", "gfx942", SPLITKV, {"lse": False}),
    ("attention.max_seq_len_q", "gfx950", BWD, {"max_seq_len_q": 64}),
    ("attention.max_seq_len_q", "gfx950", {**BWD, "max_seq_len_q": 16}, {"group": True}),
    ("attention.max_seq_len_q", "gfx950", {**BWD, "max_seq_len_q": 16}, {"mask": "generic"}),
    ("attention.bwd_padding", "gfx942", BWD, {"hdim_q_alignment": 2}),
    ("attention.bwd_padding", "gfx942", BWD, {"hdim_q_alignment": 8, "hdim_v_alignment": 1}),
    ("attention.bwd_padding", "gfx950", {**BWD, "trload": True}, {"hdim_q_alignment": 1, "hdim_v_alignment": 1}),
    ("attention.tile_limits", "gfx942", FWD64, {"tile": (48, 64, 32, 64, 32, 64)}),
    ("attention.written_tile", "sm_90a", FWD, {"tile": (64, 128, 128, 128, 128, 128)}),
    ("attention.warp_tile", "gfx942", FWD, {"warp_tile": (16, 16, 8, 16, 16, 16)}),
    ("attention.warp_tile", "gfx1201", FWD, {"warp_tile": (32, 32, 16, 16, 16, 16)}),
    ("attention.whole_warp_tiles", "gfx942", FWD64, {"tile": (64, 64, 32, 64, 32, 64)}),
    ("attention.whole_warp_tiles", "gfx942", BWD, {"bwd_tile": (16, 96, 128, 16, 128, 16, 32, 128, 128)}),
    ("attention.tile_hdim", "gfx942", FWD, {"tile": (128, 128, 32, 64, 32, 128)}),
    ("attention.tile_hdim", "gfx942", FWD, {"tile": (128, 128, 96, 128, 32, 128)}),
    ("attention.tile_hdim", "gfx942", FWD, {"tile": (128, 128, 32, 128, 96, 128)}),
    ("attention.tile_hdim", "gfx942", BWD, {"bwd_tile": (16, 128, 128, 16, 128, 16, 48, 128, 128)}),
    ("ck_tile.attention_keys_128", "gfx942", FWD, {"tile": (128, 64, 32, 128, 32, 128)}),
    ("ck_tile.attention_async_rows_128", "gfx942", FWD, {"tile": (256, 128, 32, 128, 32, 128)}),
    ("ck_tile.attention_rows", "gfx942", FWD64, {"tile": (32, 64, 32, 64, 32, 64)}),
    ("ck_tile.attention_step_128", "gfx942", HALF, {"tile": (128, 128, 64, 128, 32, 128)}),
    ("ck_tile.attention_trload_keys", "gfx950", TRLOAD, {"tile": (128, 128, 32, 128, 16, 128)}),
    ("ck_tile.attention_v3_rows", "gfx950", TRLOAD, {"pipeline": "qr_async_trload_v3"}),
    ("ck_tile.attention_chained_products", "gfx1100", APPENDKV, {"family": "fwd"}),
    ("ck_tile.attention_lds", "gfx942", FWD256, {"tile": (256, 384, 128, 256, 32, 256)}),
    ("ck_tile.attention_waves_per_simd", "gfx942", FEW, {"block_per_cu": 2}),
    ("ck_tile.attention_async_copies", "gfx950", FWD32, {"tile": (128, 32, 16, 32, 32, 32)}),
    ("ck_tile.attention_async_copies", "gfx942", FWD, {"tile": (128, 128, 32, 128, 16, 128)}),
    ("ck_tile.attention_async_padding", "gfx942", FWD, {"pad": {"s": False, "sk": True, "d": True, "dv": True}}),
    ("ck_tile.attention_matrix_instructions", "gfx942", FWD256, {"tile": (64, 64, 32, 256, 32, 256)}),
    ("ck_tile.attention_two_steps", "gfx942", HALF, {"tile": (128, 128, 128, 128, 32, 128)}),
    ("ck_tile.attention_waves_along_keys", "gfx942", ALONG_KEYS, {"wave": (4, 1, 1, 4, 1, 1)}),
    ("ck_tile.attention_combine", "gfx942", COMBINE, {"tile": {"n1": 64}}),
    ("ck_tile.attention_combine", "gfx942", COMBINE, {"max_splits_log2": 8}),
    ("ck_tile.attention_workgroup", "gfx942", FWD, {"wave": (32, 1, 1, 32, 1, 1)}),
    ("ck_tile.attention_workgroup", "gfx942", FWD, {"wave": (4, 1, 1, 2, 1, 1)}),
    ("ck_tile.attention_features", "gfx942", FWD, {"sink": True}),
    ("ck_tile.attention_features", "gfx942", FP8, {"qscale": "block_scale"}),
    ("ck_tile.attention_features", "gfx942", FP8, {"dtype": "bf8"}),
    ("ck_tile.attention_features", "gfx942", PREFILL, {"page_size": 16}),
    ("ck_tile.attention_features", "gfx942", PREFILL, {"kv_lookup_table": "vllm"}),
    ("ck_tile.attention_features", "gfx942", PREFILL, {"kv_memory_layout": "vectorized"}),
    ("ck_tile.attention_dropout", "gfx942", FP8, {"dropout": True}),
    ("ck_tile.attention_trload_features", "gfx950", TRLOAD, {"dropout": True}),
    ("ck_tile.attention_trload_features", "gfx950", TRLOAD, {"bias": "alibi"}),
    ("attention_cpu.register_block", "x86_64_v4", FWD, {"warp_tile": (48, 8, 1, 16, 8, 1)}),
    ("attention_cpu.depth", "x86_64_v4", FWD, {"warp_tile": (48, 8, 3, 48, 8, 3)}),
    ("attention_cpu.depth", "x86_64_v4", FWD, {"warp_tile": (48, 1, 2, 48, 1, 2)}),
    ("attention_cpu.vectors", "x86_64_v4", FWD, {"warp_tile": (24, 8, 1, 24, 8, 1)}),
    ("attention_cpu.registers", "x86_64_v3", FWD, {"warp_tile": (24, 8, 1, 24, 8, 1)}),
    ("attention_cpu.registers", "x86_64_v4", BWD, {"warp_tile": (48, 16, 1, 48, 16, 1, 48, 16, 1)}),
    ("attention_cpu.caches", "x86_64_v4", FWD, {"tile": (96, 1536, 128, 128, 1536, 128)}),
    ("attention_cpu.caches", "x86_64_v3", BWD, {"bwd_tile": (24, 768, 128, 24, 128, 24, 768, 128, 128)}),
    ("attention_cpu.features", "x86_64_v4", FWD, {"pad": {"s": False, "sk": True, "d": True, "dv": True}}),
    ("attention_cpu.features", "x86_64_v4", PREFILL, {"kv_memory_layout": "vectorized"}),
    ("attention_cpu.features", "x86_64_v4", {**BWD, "dropout": True}, {"store_randval": True}),
    ("attention_cpu.features", "x86_64_v4", FWD, {"skip_min_seqlen_q": True}),
    ("attention_cpu.features", "x86_64_v4", FP8, {"qscale": "per_tensor"}),
    ("attention_cpu.features", "x86_64_v4", {**SPLITKV, "dtype": "fp8"}, {"static_quant": True}),
    ("attention_cuda.family", "sm_90a", FWD, {"family": "fwd_pagedkv"}),
    ("attention_cuda.bias", "sm_90a", PREFILL, {"bias": "elementwise"}),
    ("attention_cuda.features", "sm_90a", {**FWD, "bias": "elementwise"}, {"dropout": True}),
    ("attention_cuda.features", "sm_90a", FWD, {"skip_min_seqlen_q": True}),
    ("attention_cuda.page_size", "sm_90a", PREFILL, {"page_size": 4}),
)


def legal(arch: str, partial: Mapping[str, Any]) -> AttentionSpec:
    raw = {"op": "attention", **{name: value for name, value in partial.items() if value is not None}}
    spec = build_spec(complete(raw, archs.load(arch)))
    assert isinstance(spec, AttentionSpec)
    return spec


def changed(spec: AttentionSpec, changes: Mapping[str, Any]) -> AttentionSpec:
    fields = spec.model_dump()
    for name, value in changes.items():
        if isinstance(value, tuple):
            value = dict(zip(fields[name], (*value, *[0] * 9), strict=False))
        fields[name] = value
    return AttentionSpec.model_validate(fields)


def broken(arch: str, spec: AttentionSpec) -> tuple[Violation, ...]:
    return validate(Kernel(arch=arch, spec=spec), archs.load(arch))


@pytest.mark.parametrize(("rule", "arch", "partial", "changes"), CASES)
def test_a_rule_holds_and_breaks(rule: str, arch: str, partial: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    good = legal(arch, partial)
    assert broken(arch, good) == ()
    bad = changed(good, changes)
    violations = [violation for violation in broken(arch, bad) if violation.rule == rule]
    assert violations, [violation.rule for violation in broken(arch, bad)]
    assert all(violation.field and violation.message and violation.nearest for violation in violations)
    nearest = nearest_legal(Kernel(arch=arch, spec=bad), archs.load(arch))
    assert nearest is not None and validate(nearest, archs.load(arch)) == ()


def test_every_rule_has_a_case() -> None:
    known = {rule.id for backend in ATTENTION.backends for rule in ATTENTION.rules(backend)}
    assert known == {rule for rule, *_ in CASES}
    assert all(rule.reason.endswith(".") for backend in ATTENTION.backends for rule in ATTENTION.rules(backend))


def test_unknown_backends_are_refused() -> None:
    message = "no attention kernel is for the backend 'vulkan'; allowed: ck_tile, cutlass, cpu"
    with pytest.raises(SpecError, match=message):
        ATTENTION.rules("vulkan")
