from __future__ import annotations

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.testing.instructions import execute, make_wave


def test_counts_of_lower_lanes() -> None:
    for target, lanes in (("gfx942", 64), ("gfx1100", 32)):
        wave = make_wave(target)
        mask = wave.read_mask(4)
        execute(wave, "VOP3", "v_mbcnt_lo_u32_b32", vdst="v1", src0="s4", src1=7)
        execute(wave, "VOP3", "v_mbcnt_hi_u32_b32", vdst="v2", src0="s5", src1="v1")
        wanted = [7 + (mask & (1 << lane) - 1).bit_count() for lane in range(lanes)]
        assert wave.v[2].tolist() == wanted


def test_lane_identity() -> None:
    wave = make_wave("gfx942")
    execute(wave, "VOP3", "v_mbcnt_lo_u32_b32", vdst="v1", src0=-1, src1=0)
    execute(wave, "VOP3", "v_mbcnt_hi_u32_b32", vdst="v1", src0=-1, src1="v1")
    assert wave.v[1].tolist() == list(range(64))


@pytest.mark.parametrize(("bits", "lane"), [((1 << 64) - 1, 0), (0b1011000, 3), (1 << 63, 63), (0, 0)])
def test_first_active_lane(bits: int, lane: int) -> None:
    wave = make_wave("gfx942", exec_bits=bits)
    execute(wave, "VOP1", "v_readfirstlane_b32", vdst="v9", src0="v1")  # the encoding counts SGPRs as VGPRs
    assert wave.s[9] == wave.v[1][lane]


def test_single_lanes_whether_active_or_not() -> None:
    for target in ("gfx942", "gfx1201"):
        wave = make_wave(target, exec_bits=0)
        wave.s[2] = 64 + 13
        execute(wave, "VOP3", "v_readlane_b32", vdst="v9", src0="v1", src1="s2")
        assert wave.s[9] == wave.v[1][13]
        before = wave.v[1].copy()
        execute(wave, "VOP3", "v_writelane_b32", vdst="v1", src0="s9", src1=5)
        before[5] = wave.s[9]
        np.testing.assert_array_equal(wave.v[1], before)


def test_accumulation_registers() -> None:
    wave = make_wave("gfx90a", exec_bits=0xFF)
    before = wave.v.copy()
    execute(wave, "VOP3P", "v_accvgpr_write", vdst="v3", src0="v5")
    execute(wave, "VOP3P", "v_accvgpr_read", vdst="v6", src0="v3")
    execute(wave, "VOP1", "v_accvgpr_mov_b32", vdst="v4", src0="v3")
    execute(wave, "VOP3P", "v_accvgpr_write", vdst="v7", src0=1.0)
    active = wave.mask
    for row in (256 + 3, 6, 256 + 4):
        np.testing.assert_array_equal(wave.v[row], np.where(active, before[5], before[row]))
    assert (wave.f[256 + 7][active] == 1).all()
    np.testing.assert_array_equal(wave.v[3], before[3])


def test_permlane16() -> None:
    for name, cross in (("v_permlane16_b32", 0), ("v_permlanex16_b32", 16)):
        wave = make_wave("gfx1201")
        selectors = [(7 * lane + 3) % 16 for lane in range(16)]
        bits = sum(selector << 4 * lane for lane, selector in enumerate(selectors))
        wave.s[2], wave.s[3] = bits & 0xFFFFFFFF, bits >> 32
        values = wave.v[1].copy()
        execute(wave, "VOP3", name, vdst="v1", src0="v1", src1="s2", src2="s3")
        wanted = [values[(lane & 16 ^ cross) + selectors[lane & 15]] for lane in range(32)]
        np.testing.assert_array_equal(wave.v[1], wanted)
        wave.v[4] = np.arange(32, dtype=np.uint32)[::-1]
        values = wave.v[1].copy()
        execute(wave, "VOP3", name.replace("_b32", "_var_b32"), vdst="v5", src0="v1", src1="v4")
        np.testing.assert_array_equal(wave.v[5], [values[(lane & 16 ^ cross) + (31 - lane & 15)] for lane in range(32)])


def test_permlane16_from_inactive_lanes() -> None:
    wave = make_wave("gfx1201", exec_bits=0x0000FFFF)
    wave.s[2], wave.s[3] = 0x76543210, 0xFEDCBA98
    values = wave.v[1].copy()
    with pytest.raises(Unmodelled, match="inactive"):
        execute(wave, "VOP3", "v_permlanex16_b32", vdst="v2", src0="v1", src1="s2", src2="s3")
    execute(wave, "VOP3", "v_permlanex16_b32", vdst="v2", src0="v1", src1="s2", src2="s3", opsel=1)
    np.testing.assert_array_equal(wave.v[2][:16], values[16:])
    execute(wave, "VOP3", "v_permlanex16_b32", vdst="v2", src0="v1", src1="s2", src2="s3", opsel=2)
    assert (wave.v[2][:16] == 0).all()


def test_swaps() -> None:
    wave = make_wave("gfx950")
    a, b = wave.v[1].copy(), wave.v[2].copy()
    execute(wave, "VOP1", "v_permlane32_swap_b32", vdst="v1", src0="v2")
    np.testing.assert_array_equal(wave.v[1], np.concatenate([a[:32], b[:32]]))
    np.testing.assert_array_equal(wave.v[2], np.concatenate([a[32:], b[32:]]))
    a, b = wave.v[1].copy().reshape(4, 16), wave.v[2].copy().reshape(4, 16)
    execute(wave, "VOP1", "v_permlane16_swap_b32", vdst="v1", src0="v2")
    np.testing.assert_array_equal(wave.v[1].reshape(4, 16), [a[0], b[0], a[2], b[2]])
    np.testing.assert_array_equal(wave.v[2].reshape(4, 16), [a[1], b[1], a[3], b[3]])
    wave.set_exec(0xFF)
    a, b = wave.v[1].copy(), wave.v[2].copy()
    execute(wave, "VOP1", "v_swap_b32", vdst="v1", src0="v2")
    np.testing.assert_array_equal(wave.v[1], np.where(wave.mask, b, a))
    np.testing.assert_array_equal(wave.v[2], np.where(wave.mask, a, b))
    with pytest.raises(Unmodelled, match="inactive"):
        execute(wave, "VOP1", "v_permlane32_swap_b32", vdst="v1", src0="v2")


def test_swapped_halves() -> None:
    wave = make_wave("gfx1100")
    a, b = wave.v[1].copy(), wave.v[2].copy()
    execute(wave, "VOP1", "v_swap_b16", vdst="v1", src0="v130")  # v1.l and v2.h
    np.testing.assert_array_equal(wave.v[1], a & 0xFFFF0000 | b >> 16)
    np.testing.assert_array_equal(wave.v[2], b & 0xFFFF | a << np.uint32(16))
