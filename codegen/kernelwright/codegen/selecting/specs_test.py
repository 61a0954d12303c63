from __future__ import annotations

from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.arch import Arch
from kernelwright.codegen.operations.gemm.spec import GemmSpec, gemm_spec
from kernelwright.codegen.selecting.specs import parse_kernel, parse_kernels, parse_spec
from kernelwright.codegen.violations import IllegalKernelError, SpecError

GFX942 = archs.load("gfx942")
GOOD: dict[str, Any] = {
    "op": "gemm",
    "dtype": "fp16",
    "layout": "rcr",
    "tile": [128, 128, 32],
    "wave": [2, 2, 1],
    "warp_tile": [32, 32, 16],
    "pipeline": "compv3",
}


def parsed(raw: object, arch: Arch) -> GemmSpec:
    spec = parse_spec(raw, arch)
    assert isinstance(spec, GemmSpec)
    return spec


def _without(field: str) -> dict[str, Any]:
    return {key: value for key, value in GOOD.items() if key != field}


def test_three_spellings_of_extents_are_one_kernel() -> None:
    flat = {f"tile_{axis}": value for axis, value in zip("mnk", GOOD["tile"], strict=True)}
    spelled = [GOOD, {**GOOD, "tile": {"m": 128, "n": 128, "k": 32}}, {**_without("tile"), **flat}]
    assert len({parse_kernel(raw, GFX942).identity for raw in spelled}) == 1


def test_a_complete_spec_is_kept() -> None:
    spec = parsed(GOOD, GFX942)
    assert parse_spec(spec.model_dump(mode="json"), GFX942) == spec


@pytest.mark.parametrize(
    ("dtype", "acc", "out"), [("fp8", "fp32", "fp16"), ("int8", "int32", "int32"), ("bf16", "fp32", "bf16")]
)
def test_dtypes_follow_from_a(dtype: str, acc: str, out: str) -> None:
    spec = parsed({**GOOD, "dtype": dtype}, GFX942)
    assert (spec.dtype_a, spec.dtype_b, spec.dtype_acc, spec.dtype_c) == (dtype, dtype, acc, out)


def test_architectures_with_one_choice_fill_it_in() -> None:
    spec = parsed(
        {"op": "gemm", "dtype": "fp32", "layout": "rrr", "tile": [96, 96, 64], "warp_tile": [6, 16, 1]},
        archs.load("x86_64_v3"),
    )
    assert (spec.pipeline, spec.scheduler, spec.epilogue, spec.wave.m) == ("packed", "default", "default", 1)
    spec = parsed(_without("pipeline"), archs.load("sm_90a"))
    assert (spec.pipeline, spec.epilogue, spec.persistent) == ("tma", "tma", True)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (3, "a spec is an object"),
        ({**GOOD, "dtyp": "fp16"}, "unknown field 'dtyp' .did you mean 'dtype'"),
        ({**GOOD, "dtype": "fp61"}, "dtype = 'fp61' is unknown .*allowed: fp32, fp16"),
        ({**GOOD, "dtype": 16}, "dtype = 16 is unknown"),
        ({**GOOD, "dtype_a": "fp16"}, "'dtype' stands for both"),
        ({**GOOD, "layout": "ccc"}, "layout = 'ccc' is unknown .*allowed: rcr, rrr, crr, ccr"),
        ({**GOOD, "pipeline": "compv9"}, "pipeline = 'compv9' is unknown .did you mean"),
        ({**GOOD, "tile": [1, 2]}, "tile = .1, 2. is neither"),
        ({**GOOD, "tile": {"m": 1, "n": 2}}, "missing field 'tile.k'"),
        ({**GOOD, "tile": {"m": 1, "n": 2, "k": 3, "o": 4}}, "unknown field 'tile.o'"),
        ({**GOOD, "tile": [0, 128, 32]}, "tile.m = 0: should be greater than 0"),
        ({**GOOD, "tile_m": 64}, "both 'tile' and 'tile_m'"),
        ({**GOOD, "persistent": 1}, "persistent = 1: should be a valid boolean"),
        ({"op": "gemm", "dtype": "fp16"}, "missing field 'layout', 'tile', 'wave', 'warp_tile', 'pipeline'"),
    ],
)
def test_what_is_no_spec_is_refused_readably(raw: object, message: str) -> None:
    with pytest.raises(SpecError, match=message) as caught:
        parse_kernel(raw, GFX942)
    assert "pydantic" not in str(caught.value) and "validation error" not in str(caught.value)


def test_an_illegal_kernel_carries_every_reason() -> None:
    with pytest.raises(IllegalKernelError) as caught:
        parse_kernel({**GOOD, "wave": [4, 4, 1], "warp_tile": [32, 32, 32]}, GFX942)
    assert {"gemm.wave_set", "gemm.warp_tile_set"} <= {violation.rule for violation in caught.value.violations}
    assert "wave = 4x4x1" in str(caught.value) and "nearest legal kernel: " in str(caught.value)


def test_lists_of_specs() -> None:
    two = parse_kernels([GOOD, {**GOOD, "dtype": "bf16"}], GFX942)
    assert [gemm_spec(kernel).dtype_a for kernel in two] == ["fp16", "bf16"]
    with pytest.raises(SpecError, match="spec 1 is the same kernel as spec 0"):
        parse_kernels([GOOD, GOOD], GFX942)
    with pytest.raises(SpecError, match="spec 1: unknown field"):
        parse_kernels([GOOD, {"op": "gemm", "x": 1}], GFX942)
    with pytest.raises(SpecError, match="empty"):
        parse_kernels([], GFX942)
