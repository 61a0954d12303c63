from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.testing.instructions import execute, make_wave

FIELDS = {0: (0, 8), 1: (8, 8), 2: (16, 8), 3: (24, 8), 4: (0, 16), 5: (16, 16), 6: (0, 32)}


def part(word: int, selector: int, signed: bool) -> int:
    low, bits = FIELDS[selector]
    value = word >> low & (1 << bits) - 1
    return (value ^ 1 << bits - 1) - (1 << bits - 1) if signed else value


@pytest.mark.parametrize("selector", FIELDS)
@pytest.mark.parametrize("signed", [0, 1])
def test_selected_sources(selector: int, signed: int) -> None:
    wave = make_wave("gfx942")
    fields = {"src0_sel": selector, "src0_sext": signed, "src1_sel": 5, "dst_sel": 6}
    execute(wave, "VOP2_SDWA", "v_add_u32", vdst="v7", vsrc0="v1", vsrc1="v2", **fields)
    wanted = [
        part(int(a), selector, bool(signed)) + part(int(b), 5, False) for a, b in zip(wave.v[1], wave.v[2], strict=True)
    ]
    np.testing.assert_array_equal(wave.v[7], np.array([value & 0xFFFFFFFF for value in wanted], np.uint32))


@pytest.mark.parametrize("selector", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("unused", [0, 1, 2])
def test_placed_results(selector: int, unused: int) -> None:
    wave = make_wave("gfx942", exec_bits=0x0F0F_0F0F_1234_5678)
    before = wave.v[7].copy()
    fields = {"src0_sel": 6, "src1_sel": 6, "dst_sel": selector, "dst_unused": unused}
    execute(wave, "VOP2_SDWA", "v_or_b32", vdst="v7", vsrc0="v1", vsrc1="v2", **fields)
    low, bits = FIELDS[selector]
    field = (1 << bits) - 1 << low
    for lane in range(64):
        result, old = int(wave.v[1][lane] | wave.v[2][lane]), int(before[lane])
        placed = result << low & field
        sign = 0xFFFFFFFF << low + bits & 0xFFFFFFFF if result >> bits - 1 & 1 else 0
        wanted = {0: placed, 1: placed | sign, 2: old & ~field | placed}[unused]
        assert wave.v[7][lane] == (wanted if wave.exec >> lane & 1 else old)


def test_scalars_halves_and_comparisons() -> None:
    wave = make_wave("gfx942")
    fields: dict[str, Any] = {"src0_sel": 4, "src1_sel": 6, "dst_sel": 6}
    execute(wave, "VOP2_SDWA", "v_and_b32", vdst="v7", vsrc0="v1", vsrc1="v3", s1=0, **fields)
    np.testing.assert_array_equal(wave.v[7], wave.v[1] & 0xFFFF & wave.v[3])
    execute(wave, "VOP2_SDWA", "v_and_b32", vdst="v7", vsrc0="v5", s0=1, vsrc1="v3", **fields)
    np.testing.assert_array_equal(wave.v[7], np.uint32(wave.s[5] & 0xFFFF) & wave.v[3])
    with np.errstate(all="ignore"):
        halves = wave.v[1].view(np.float16)[1::2] + wave.v[2].view(np.float16)[::2]
    execute(wave, "VOP2_SDWA", "v_add_f16", vdst="v7", vsrc0="v1", vsrc1="v2", src0_sel=5, src1_sel=4, dst_sel=6)
    np.testing.assert_array_equal(wave.v[7].view(np.float16)[::2], halves)
    execute(wave, "VOPC_SDWA_SDST", "v_cmp_eq_u32", sdst="s8", sd=1, vsrc0="v1", vsrc1="v2", src0_sel=3, src1_sel=3)
    equal = (wave.v[1] >> 24) == (wave.v[2] >> 24)
    assert wave.read_mask(8) == sum(int(flag) << lane for lane, flag in enumerate(equal))


def test_what_has_no_meaning_is_refused() -> None:
    with pytest.raises(Unmodelled, match="selector"):
        fields = {"src0_sel": 7, "src1_sel": 6, "dst_sel": 6}
        execute(make_wave("gfx942"), "VOP2_SDWA", "v_or_b32", vdst="v7", vsrc0="v1", vsrc1="v2", **fields)
