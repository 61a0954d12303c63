from __future__ import annotations

from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.arch import load, names
from kernelwright.codegen.backends.ck_tile_copy import Copy
from kernelwright.codegen.dtypes import DType, Layout
from kernelwright.codegen.fields import COMPILED_ACTIVATIONS
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.ck_tile import DTYPES, EPILOGUES, LAYOUTS, PIPELINES, SCHEDULERS
from kernelwright.codegen.operations.gemm.constraints import ck_tile_copies as copies
from kernelwright.codegen.operations.gemm.constraints.ck_tile import RULES
from kernelwright.codegen.operations.gemm.spec import (
    Activation,
    DOp,
    Epilogue,
    Extent,
    GemmSpec,
    Padding,
    Pipeline,
    Scheduler,
    StreamK,
    default_acc_dtype,
    default_output_dtype,
)
from kernelwright.codegen.selecting.validate import validate

AMD = [name for name in names() if load(name).backend == "ck_tile"]
CDNA = ["gfx90a", "gfx942", "gfx950"]
Triple = tuple[int, int, int]


def spec(
    tile: Triple = (128, 128, 32),
    wave: Triple = (2, 2, 1),
    warp: Triple = (32, 32, 16),
    dtype: str = "fp16",
    **changes: object,
) -> GemmSpec:
    a = DType(dtype)
    values: dict[str, object] = {
        **{
            "op": "gemm",
            "dtype_a": a,
            "dtype_b": a,
            "dtype_c": default_output_dtype(a),
            "dtype_acc": default_acc_dtype(a),
        },
        **{"layout": Layout.RCR, "pipeline": Pipeline.COMPV3, "epilogue": Epilogue.CSHUFFLE},
        **{"scheduler": Scheduler.INTRAWAVE, "tile": extent(tile), "wave": extent(wave), "warp_tile": extent(warp)},
    }
    return GemmSpec.model_validate({**values, **changes})


def extent(triple: Triple) -> Extent:
    return Extent(m=triple[0], n=triple[1], k=triple[2])


def broken(spec: GemmSpec, arch: str) -> set[str]:
    return {violation.rule for violation in validate(Kernel(arch=arch, spec=spec), load(arch))}


RDNA: dict[str, object] = {"wave": (4, 2, 1), "warp": (16, 16, 16), "k_block_per_cu": 2}
MEM: dict[str, object] = {"wave": (4, 1, 1), "warp": (32, 32, 8), "tile": (128, 32, 64), "pipeline": Pipeline.MEM}
ASYNC: dict[str, object] = {
    **{"tile": (128, 128, 64), "warp": (16, 16, 32), "pipeline": Pipeline.COMP_ASYNC, "pad": Padding(k=False)}
}
PACKED: dict[str, object] = {
    **{"tile": (128, 128, 64), "wave": (1, 4, 1), "warp": (16, 16, 32), "preshuffle": True},
    **{"pipeline": Pipeline.PRESHUFFLEV2, "scheduler": Scheduler.DEFAULT},
}
FUSED: tuple[dict[str, object], ...] = tuple({"activation": activation} for activation in COMPILED_ACTIVATIONS)
SHARED: tuple[dict[str, object], ...] = tuple({"stream_k": how} for how in StreamK)
VARIANTS: tuple[dict[str, object], ...] = (
    {"num_d": 1, "d_op": DOp.MULTIPLY},
    {"num_d": 4},
    *FUSED,
    *SHARED,
    {"batched": True, "num_d": 1},
    {"batched": True, "split_k": True},
    {"batched": True, "stream_k": StreamK.TREE},
    {"grouped": True},
    {"persistent": True},
    {"persistent": True, "grouped": True},
)
MIXED: dict[str, object] = {"dtype": "fp8", "dtype_b": DType.BF8, "tile": (128, 128, 64), "warp": (32, 32, 32)}

# Compiled without spills and with matrix instructions, and (upstream or here) with right results.
GOOD = [
    *(("gfx942", {**MEM, "scheduler": scheduler}) for scheduler in (Scheduler.INTRAWAVE, Scheduler.INTERWAVE)),
    *((arch, {}) for arch in CDNA),
    *(("gfx942", {"layout": layout}) for layout in Layout),
    *(("gfx950", {"layout": layout, "tile": (128, 128, 64)}) for layout in Layout),
    ("gfx942", {"dtype": "bf16"}),
    ("gfx942", {"dtype": "fp8", "tile": (128, 128, 64), "warp": (32, 32, 32)}),
    ("gfx942", {"dtype": "bf8", "tile": (128, 128, 64), "warp": (32, 32, 32)}),
    ("gfx942", {"dtype": "int8", "tile": (128, 128, 64)}),
    ("gfx942", {"dtype": "fp32", "tile": (128, 128, 16), "warp": (16, 16, 16)}),
    ("gfx950", {"dtype": "fp8", "tile": (128, 128, 128), "warp": (32, 32, 64)}),
    ("gfx942", {"tile": (256, 128, 32), "pipeline": Pipeline.COMPV6}),
    ("gfx942", {"pipeline": Pipeline.COMPV4, "dtype": "bf16"}),
    ("gfx942", {"tile": (128, 64, 64), "k_block_per_cu": 2}),
    ("gfx950", {"tile": (128, 64, 128), "k_block_per_cu": 2}),
    ("gfx1201", {**RDNA, "tile": (128, 128, 64), "k_block_per_cu": 4}),
    ("gfx950", ASYNC),
    *((arch, RDNA) for arch in ("gfx1100", "gfx1201")),
    ("gfx1201", {**RDNA, "dtype": "fp8"}),
    ("gfx1201", {**RDNA, "dtype": "int8", "tile": (128, 128, 64)}),
    ("gfx942", {"epilogue": Epilogue.DEFAULT, "tile": (192, 128, 32)}),
    *((arch, PACKED) for arch in CDNA),
    *((arch, {**PACKED, **RDNA, "tile": (128, 64, 64)}) for arch in ("gfx1100", "gfx1201")),
    *(("gfx942", {"dtype": "bf16", **variant}) for variant in VARIANTS),
    *((arch, {**RDNA, **variant}) for variant in VARIANTS for arch in ("gfx1100", "gfx1201")),
    ("gfx942", {"dtype": "int8", "tile": (128, 128, 64), "activation": Activation.RELU, "num_d": 1}),
    ("gfx942", MIXED),
    ("gfx942", {**MIXED, "dtype": "bf8", "dtype_b": DType.FP8, "warp": (32, 32, 16)}),
    ("gfx950", {**MIXED, "tile": (128, 128, 128), "warp": (32, 32, 64)}),
    ("gfx1201", {**RDNA, "dtype": "bf8", "dtype_b": DType.FP8, "tile": (128, 128, 64)}),
]

BAD = [
    ("cshuffle_repeat", "gfx942", {"tile": (192, 128, 32)}, "tile.m"),
    ("cshuffle_repeat", "gfx942", {"tile": (128, 192, 32)}, "tile.n"),
    ("warp_tile", "gfx1201", {"wave": (4, 2, 1)}, "warp_tile"),
    ("warp_tile", "gfx942", {"dtype": "fp32", "warp": (32, 32, 8)}, "warp_tile"),
    ("warp_tile", "gfx942", {"warp": (4, 64, 16)}, "warp_tile"),
    ("warp_tile", "gfx950", {"dtype": "fp8", "layout": Layout.RRR, "warp": (32, 32, 32)}, "warp_tile"),
    ("warp_tile", "gfx950", {"dtype": "fp32", "layout": Layout.CRR, "warp": (16, 16, 16)}, "layout"),
    ("dtypes", "gfx90a", {"dtype": "int8", "tile": (128, 128, 64)}, "dtype_a"),
    ("dtypes", "gfx90a", {"dtype": "fp8", "warp": (32, 32, 32)}, "dtype_a"),
    ("dtypes", "gfx1100", {**RDNA, "dtype": "bf8"}, "dtype_a"),
    ("mixed_dtypes", "gfx942", {"dtype_b": DType.BF16}, "dtype_b"),
    ("mixed_dtypes", "gfx942", {**MIXED, "pipeline": Pipeline.COMPV4}, "pipeline"),
    ("mixed_dtypes", "gfx950", {**MIXED, "layout": Layout.RRR}, "layout"),
    ("preshuffle", "gfx942", {**PACKED, "layout": Layout.RRR}, "layout"),
    ("preshuffle", "gfx942", {**PACKED, "layout": Layout.CCR}, "layout"),
    ("preshuffle", "gfx942", {**PACKED, "wave": (2, 1, 1), "warp": (64, 4, 16), "tile": (256, 64, 64)}, "warp_tile.n"),
    ("preshuffle", "gfx1201", {**PACKED, "dtype": "fp8", "wave": (8, 1, 1), "warp": (16, 16, 16)}, "tile.m"),
    ("copy_pattern", "gfx942", {**PACKED, "tile": (16, 128, 64)}, "tile"),
    ("shared_k", "gfx942", {"stream_k": StreamK.TREE, "pipeline": Pipeline.COMPV6}, "pipeline"),
    ("shared_k", "gfx942", {"stream_k": StreamK.LINEAR, "persistent": True}, "persistent"),
    ("shared_k", "gfx942", {**PACKED, "split_k": True}, "split_k"),
    ("shared_k", "gfx942", {**PACKED, "stream_k": StreamK.TREE}, "stream_k"),
    ("variants", "gfx942", {**PACKED, "batched": True}, "batched"),
    ("variants", "gfx942", {**PACKED, "grouped": True}, "grouped"),
    ("variants", "gfx942", {"dtype": "int8", "tile": (128, 128, 64), "activation": Activation.GELU}, "activation"),
    ("pipeline", "gfx942", {"num_wave_groups": 2}, "num_wave_groups"),
    ("wave_k", "gfx942", {"wave": (2, 1, 2)}, "wave.k"),
    ("workgroup", "gfx950", {"wave": (8, 4, 1), "tile": (256, 256, 32)}, "wave"),
    ("copy_pattern", "gfx942", {"tile": (128, 192, 32), "layout": Layout.RRR, "epilogue": Epilogue.DEFAULT}, "tile"),
    ("copy_pattern", "gfx942", {"tile": (128, 128, 48)}, "tile"),
    ("lds", "gfx942", {"tile": (256, 256, 128)}, "tile"),
    ("lds", "gfx942", {"tile": (256, 256, 64), "pipeline": Pipeline.COMPV4}, "tile"),
    ("waves_per_simd", "gfx942", {"tile": (128, 64, 128), "k_block_per_cu": 2}, "k_block_per_cu"),
    ("waves_per_simd", "gfx942", {"tile": (64, 32, 256), "wave": (2, 1, 1), "k_block_per_cu": 2}, "k_block_per_cu"),
    ("accumulators", "gfx942", {"tile": (256, 256, 32), "pipeline": Pipeline.COMPV4}, "tile"),
    ("accumulators", "gfx942", {"tile": (256, 256, 32), "pipeline": Pipeline.COMPV6}, "tile"),
    ("accumulators", "gfx942", {"tile": (256, 256, 32), "k_block_per_cu": 2}, "tile"),
    ("accumulators", "gfx942", {"tile": (256, 256, 64)}, "tile"),
    ("accumulators", "gfx942", {"tile": (256, 256, 32), "layout": Layout.RRR}, "tile"),
    ("accumulators", "gfx942", {"tile": (128, 128, 32), "wave": (1, 1, 1)}, "tile"),
    ("accumulators", "gfx1201", {**RDNA, "tile": (256, 128, 32)}, "tile"),
    ("accumulators", "gfx1100", {**RDNA, "pipeline": Pipeline.COMPV4}, "tile"),
    ("comp_async", "gfx942", ASYNC, "pipeline"),
    ("comp_async", "gfx950", {**ASYNC, "pad": Padding()}, "pad.k"),
    ("comp_async", "gfx950", {**ASYNC, "layout": Layout.RRR}, "layout"),
    ("comp_async", "gfx950", {**ASYNC, "dtype": "fp8"}, "dtype_a"),
]


@pytest.mark.parametrize(("arch", "changes"), GOOD)
def test_kernels_that_work_are_legal(arch: str, changes: dict[str, object]) -> None:
    assert broken(spec(**changes), arch) == set()  # type: ignore[arg-type]


@pytest.mark.parametrize(("rule", "arch", "changes", "field"), BAD)
def test_known_bad_kernels_are_refused(rule: str, arch: str, changes: dict[str, object], field: str) -> None:
    bad = spec(**changes)  # type: ignore[arg-type]
    violations = [item for item in validate(Kernel(arch=arch, spec=bad), load(arch)) if item.rule == f"ck_tile.{rule}"]
    assert field in {item.field for item in violations}
    for item in violations:
        assert item.message and item.allowed and item.nearest


def test_every_rule_has_a_known_bad_kernel() -> None:
    assert {f"ck_tile.{rule}" for rule, *_ in BAD} == {rule.id for rule in RULES}


@pytest.mark.parametrize(
    ("arch", "changes", "rule"),
    [
        ("gfx942", {"scheduler": Scheduler.INTERWAVE}, "gemm.traits"),
        ("gfx942", {"warp": (48, 32, 16)}, "gemm.warp_tile_set"),
        ("gfx942", {"tile": (96, 128, 32)}, "gemm.divisibility"),
        ("gfx942", {"tile": (128, 128, 8)}, "gemm.divisibility"),
        ("gfx942", ASYNC, "gemm.pipeline"),
    ],
)
def test_common_rules_know_the_rest(arch: str, changes: dict[str, object], rule: str) -> None:
    assert rule in broken(spec(**changes), arch)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("tables", "members"),
    [(DTYPES, DType), (LAYOUTS, Layout), (PIPELINES, Pipeline), (EPILOGUES, Epilogue), (SCHEDULERS, Scheduler)],
)
def test_every_member_is_mapped_or_refused(tables: dict[object, object], members: type[StrEnum]) -> None:
    assert set(tables) == set(members)
    for member, symbol in tables.items():
        if symbol is None:
            field = members.__name__.lower()
            refusals = [broken(spec().model_copy(update={field: member}), arch) for arch in AMD]
            assert all(refusals), f"{member} has no symbol, yet no rule refuses it"


def test_a_named_nearest_tile_is_legal() -> None:
    arch = load("gfx942")
    bad = spec(tile=(128, 128, 48))
    (violation,) = [item for item in validate(Kernel(arch="gfx942", spec=bad), arch) if "copy" in item.rule]
    m, n, k = map(int, violation.nearest.split("x"))
    assert broken(spec(tile=(m, n, k)), "gfx942") == set()


triples = st.tuples(*(st.sampled_from((1, 2, 4, 8, 16, 32, 48, 64, 96, 128, 192, 256, 512)),) * 3)


@given(st.sampled_from(AMD), triples, triples, triples, st.sampled_from(list(DType)), st.sampled_from(list(Layout)))
def test_rules_never_raise(arch: str, tile: Triple, wave: Triple, warp: Triple, dtype: DType, layout: Layout) -> None:
    made = spec(tile=tile, wave=wave, warp=warp, dtype=dtype, layout=layout)
    for rule in RULES:
        for violation in rule.check(made, load(arch)):
            assert violation.rule == rule.id


@given(triples, st.sampled_from((1, 2, 4, 8)), st.sampled_from((32, 64)))
def test_a_copy_without_a_problem_moves_every_element_once(tile: Triple, waves: int, wave_size: int) -> None:
    rows, row, _ = tile
    lanes = waves * wave_size
    vector = copies.load_vector(2, row, rows * row // lanes)
    copy = Copy("copying A", rows, row, vector)
    if not copy.problem(wave_size, waves):
        used = min(vector, rows * row // lanes)
        assert rows * row % (lanes * used) == 0
        assert row % used == 0


@pytest.mark.parametrize(
    ("element_bytes", "row", "per_lane", "vector"),
    [
        (2, 32, 16, 8),
        (2, 32, 4, 4),
        (2, 36, 16, 4),
        (2, 34, 16, 1),
        (2, 33, 16, 1),
        (1, 64, 32, 16),
        (1, 12, 12, 1),
        (4, 16, 8, 4),
    ],
)
def test_the_vector_of_a_load(element_bytes: int, row: int, per_lane: int, vector: int) -> None:
    assert copies.load_vector(element_bytes, row, per_lane) == vector
