from __future__ import annotations

import operator
from collections.abc import Callable
from math import isnan
from typing import Any

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_wave

ACTIVE = 0x0FFF_F00F_1234_5679
INTEGERS: dict[str, Callable[[int, int], bool]] = {
    "lt": operator.lt,
    "eq": operator.eq,
    "le": operator.le,
    "gt": operator.gt,
    "ne": operator.ne,
    "ge": operator.ge,
}
FLOATS: dict[str, Callable[[float, float], bool]] = {
    "lt": operator.lt,
    "eq": operator.eq,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "lg": lambda a, b: a < b or a > b,
    "o": lambda a, b: not (isnan(a) or isnan(b)),
    "u": lambda a, b: isnan(a) or isnan(b),
    "nge": lambda a, b: not a >= b,
    "nlg": lambda a, b: not (a < b or a > b),
    "ngt": lambda a, b: not a > b,
    "nle": lambda a, b: not a <= b,
    "neq": lambda a, b: a != b,
    "nlt": lambda a, b: not a < b,
}
SIZES = {"16": np.uint16, "32": np.uint32, "64": np.uint64}


def fill(wave: Wave, kind: str, seed: int) -> list[Any]:
    """Numbers of a kind in v2 and v4, equal ones among them; returns the two lists."""
    random = np.random.default_rng(seed)
    size = int(kind[1:])
    dtype = np.dtype({"f": f"f{size // 8}", "u": f"u{size // 8}", "i": f"i{size // 8}"}[kind[0]])
    lists = []
    bits = random.integers(0, (1 << size) - 1, (2, wave.lanes), SIZES[kind[1:]], endpoint=True)
    bits[1, ::4] = bits[0, ::4]
    if kind[0] == "f":
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0], dtype).view(bits.dtype)
        bits[:, 1::2] = random.choice(special, bits[:, 1::2].shape)
    for row, values in zip((2, 4), bits, strict=True):
        if size == 64:
            wave.v[row : row + 2] = values.view(np.uint32).reshape(-1, 2).T
        else:
            wave.v[row] = values
        lists.append(values.view(dtype).tolist())
    return lists


def expected(wave: Wave, relation: Callable[..., bool], a: list[Any], b: list[Any]) -> int:
    return sum(relation(x, y) << lane for lane, (x, y) in enumerate(zip(a, b, strict=True)) if wave.exec >> lane & 1)


@pytest.mark.parametrize("kind", ["u16", "i16", "u32", "i32", "u64", "i64"])
def test_integers(kind: str) -> None:
    for seed, (name, relation) in enumerate(INTEGERS.items()):
        wave = make_wave("gfx942", exec_bits=ACTIVE)
        a, b = fill(wave, kind, seed)
        execute(wave, "VOPC", f"v_cmp_{name}_{kind}", src0="v2", vsrc1="v4")
        assert wave.read_mask(106) == expected(wave, relation, a, b)
        execute(wave, "VOP3_SDST", f"v_cmp_{name}_{kind}", vdst="s10", src0="v2", src1="v4")
        assert wave.read_mask(10) == expected(wave, relation, a, b)


@pytest.mark.parametrize("kind", ["f16", "f32", "f64"])
def test_floats(kind: str) -> None:
    for target in ("gfx942", "gfx1100"):
        for seed, (name, relation) in enumerate(FLOATS.items()):
            wave = make_wave(target, exec_bits=ACTIVE)
            a, b = fill(wave, kind, seed)
            execute(wave, "VOPC", f"v_cmp_{name}_{kind}", src0="v2", vsrc1="v4")
            assert wave.read_mask(106) == expected(wave, relation, a, b)


def test_input_modifiers_and_denormals() -> None:
    wave = make_wave("gfx942", mode=0xC0)
    wave.f[1][...], wave.f[2][...] = np.float32(2**-130), 0.0
    execute(wave, "VOPC", "v_cmp_gt_f32", src0="v1", vsrc1="v2")
    assert wave.read_mask(106) == 0
    wave.mode = 0xF0
    execute(wave, "VOPC", "v_cmp_gt_f32", src0="v1", vsrc1="v2")
    assert wave.read_mask(106) == (1 << 64) - 1
    execute(wave, "VOP3_SDST", "v_cmp_gt_f32", vdst="s4", src0="v1", src1="v2", neg=1)
    assert wave.read_mask(4) == 0
    with pytest.raises(Unmodelled):
        execute(wave, "VOP3_SDST", "v_cmp_gt_u32", vdst="s4", src0="v1", src1="v2", neg=1)


def test_cmpx_narrows_exec_and_on_cdna_writes_vcc_too() -> None:
    for target in ("gfx942", "gfx1100", "gfx1201"):
        wave = make_wave(target, exec_bits=ACTIVE)
        a, b = fill(wave, "i32", 9)
        before = wave.read_mask(106)
        wanted = expected(wave, operator.lt, a, b)
        execute(wave, "VOPC", "v_cmpx_lt_i32", src0="v2", vsrc1="v4")
        assert wave.exec == wanted
        assert wave.read_mask(106) == (wanted if target == "gfx942" else before)
        assert (wave.mask == [bool(wanted >> lane & 1) for lane in range(wave.lanes)]).all()


def test_classes_of_floats() -> None:
    least = 2.0**-149
    samples = [np.nan, -np.inf, -1.0, -least, -0.0, 0.0, least, 1.0, np.inf]
    for place, sample in enumerate(samples):
        wave = make_wave("gfx942", mode=0xC0)  # classes see denormals that are flushed elsewhere
        wave.f[1][...] = sample
        wave.v[2] = np.array([1 << bit if bit < 10 else 0x3FF ^ 1 << place + 1 for bit in range(64)], np.uint32)
        execute(wave, "VOPC", "v_cmp_class_f32", src0="v1", vsrc1="v2")
        assert wave.read_mask(106) == 1 << place + 1
    wave.v[1] = np.uint32(0x7F800001)
    execute(wave, "VOPC", "v_cmp_class_f32", src0="v1", vsrc1="v2")
    assert wave.read_mask(106) & 0x3FF == 1  # signalling


def test_selection_by_masks() -> None:
    wave = make_wave("gfx942", exec_bits=ACTIVE)
    mask, before = wave.read_mask(106), wave.v[7].copy()
    take = np.array([bool(mask >> lane & 1) for lane in range(64)])
    execute(wave, "VOP2", "v_cndmask_b32", vdst="v7", src0="v1", vsrc1="v2")
    wanted = np.where(wave.mask, np.where(take, wave.v[2], wave.v[1]), before)
    np.testing.assert_array_equal(wave.v[7], wanted)
    a, b = wave.v[3].copy(), wave.v[4].copy()
    wave.write_mask(8, mask)
    execute(wave, "VOP3", "v_cndmask_b32", vdst="v3", src0="v3", src1="v4", src2="s8")
    np.testing.assert_array_equal(wave.v[3], np.where(take & wave.mask, b, a))
    execute(wave, "VOP3", "v_cndmask_b32", vdst="v4", src0=0, src1="v4", src2="s8")
    np.testing.assert_array_equal(wave.v[4], np.where(wave.mask & ~take, 0, b))
    execute(wave, "VOP3", "v_cndmask_b32", vdst="v5", src0="v1", src1=1.0, src2="s8", neg=3, abs=1)
    signed = np.where(take, np.float32(-1), -np.abs(wave.f[1]))
    np.testing.assert_array_equal(wave.v[5][wave.mask], signed.view(np.uint32)[wave.mask])
