from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.testing.instructions import execute, make_wave


def fields(word: int, bits: int, signed: bool) -> list[int]:
    parts = [word >> low & (1 << bits) - 1 for low in range(0, 32, bits)]
    return [(part ^ 1 << bits - 1) - (1 << bits - 1) if signed else part for part in parts]


@pytest.mark.parametrize(
    ("target", "name", "bits", "signs"),
    [
        ("gfx942", "v_dot2_i32_i16", 16, (True, True)),
        ("gfx942", "v_dot2_u32_u16", 16, (False, False)),
        ("gfx942", "v_dot4_i32_i8", 8, (True, True)),
        ("gfx942", "v_dot4_u32_u8", 8, (False, False)),
        ("gfx942", "v_dot8_i32_i4", 4, (True, True)),
        ("gfx942", "v_dot8_u32_u4", 4, (False, False)),
        ("gfx1100", "v_dot4_i32_iu8", 8, (True, False)),
        ("gfx1201", "v_dot8_i32_iu4", 4, (False, True)),
    ],
)
def test_integers_wrap_and_saturate(target: str, name: str, bits: int, signs: tuple[bool, bool]) -> None:
    signed = any(signs)
    least, most = (-(1 << 31), (1 << 31) - 1) if signed else (0, (1 << 32) - 1)
    for clamp in (0, 1):
        wave = make_wave(target)
        wave.v[3][:4] = [0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0]
        extra = {"neg": signs[0] | signs[1] << 1} if "iu" in name else {}
        execute(wave, "VOP3P", name, vdst="v7", src0="v1", src1="v2", src2="v3", clmp=clamp, **extra)
        for lane in range(wave.lanes):
            a, b = (fields(int(wave.v[row][lane]), bits, sign) for row, sign in zip((1, 2), signs, strict=True))
            addend = int(wave.i[3][lane]) if signed else int(wave.v[3][lane])
            total = sum(x * y for x, y in zip(a, b, strict=True)) + addend
            total = min(max(total, least), most) if clamp else total
            assert wave.v[7][lane] == total & 0xFFFFFFFF


FLOATS: list[tuple[str, str, str, Any, Any]] = [
    ("gfx942", "VOP3P", "v_dot2_f32_f16", np.float16, np.float16),
    ("gfx950", "VOP3P", "v_dot2_f32_bf16", ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    ("gfx1100", "VOP3P", "v_dot2_f32_f16", np.float16, np.float16),
    ("gfx942", "VOP2", "v_dot2c_f32_f16", np.float16, np.float16),
    ("gfx1201", "VOP3P", "v_dot4_f32_fp8_bf8", ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2),
]


@pytest.mark.parametrize(("target", "encoding", "name", "first", "second"), FLOATS)
def test_floats_are_rounded_once(target: str, encoding: str, name: str, first: Any, second: Any) -> None:
    wave = make_wave(target)
    random = np.random.default_rng(6)
    count = 4 // np.dtype(first).itemsize
    for row, dtype in ((1, first), (2, second)):
        values = random.standard_normal(wave.lanes * count).astype(dtype)
        wave.v[row] = np.ascontiguousarray(values).view(np.uint8).view(np.uint32)
    wave.f[3][...] = random.standard_normal(wave.lanes)
    parts = [
        wave.v[row].view(np.uint8).view(dtype).astype(np.float64).reshape(-1, count)
        for row, dtype in ((1, first), (2, second))
    ]
    wanted = ((parts[0] * parts[1]).sum(axis=1) + wave.f[3]).astype(np.float32)
    if encoding == "VOP2":
        execute(wave, encoding, name, vdst="v3", src0="v1", vsrc1="v2")
        np.testing.assert_array_equal(wave.f[3], wanted)
    else:
        execute(wave, encoding, name, vdst="v7", src0="v1", src1="v2", src2="v3")
        np.testing.assert_array_equal(wave.f[7], wanted)


def test_sums_in_halves() -> None:
    for name, dtype, other in (
        ("v_dot2_f16_f16", np.float16, "v_dot2_f16_f16"),
        ("v_dot2_bf16_bf16", ml_dtypes.bfloat16, "v_dot2_bf16_bf16"),
    ):
        wave = make_wave("gfx1100")
        random = np.random.default_rng(8)
        for row in (1, 2, 3):
            values = random.standard_normal(2 * wave.lanes).astype(dtype)
            wave.v[row] = values.view(np.uint16).view(np.uint32)
        a, b, c = (wave.v[row].view(np.uint16).view(dtype).astype(np.float64).reshape(-1, 2) for row in (1, 2, 3))
        before = wave.v[7].copy()
        execute(wave, "VOP3", other, vdst="v7", src0="v1", src1="v2", src2="v3", opsel=0b1100)
        wanted = ((a * b).sum(axis=1) + c[:, 1]).astype(dtype).view(np.uint16)
        np.testing.assert_array_equal(wave.v[7] >> 16, wanted, err_msg=name)
        np.testing.assert_array_equal(wave.v[7] & 0xFFFF, before & 0xFFFF)


def test_what_is_not_modelled_is_refused() -> None:
    wave = make_wave("gfx942")
    operands = {"vdst": "v7", "src0": "v1", "src1": "v2", "src2": "v3"}
    for name, more in (("v_dot2_f32_f16", {"opsel": 1}), ("v_dot2_f32_f16", {"neg": 1}), ("v_dot4_i32_i8", {"neg": 2})):
        with pytest.raises(Unmodelled):
            execute(wave, "VOP3P", name, **operands, **more)
    wave.mode = 0xC0
    with pytest.raises(Unmodelled, match="mode"):
        execute(wave, "VOP3P", "v_dot2_f32_f16", **operands)
