from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.testing.instructions import execute, make_wave

ALL = {"row_mask": 15, "bank_mask": 15}
# control → (source lane of a lane, or None if that is outside)
CONTROLS: dict[int, Callable[[int], int | None]] = {
    0x1B: lambda lane: lane ^ 3,  # quad_perm:[3,2,1,0]
    0x4E: lambda lane: lane ^ 2,  # quad_perm:[2,3,0,1]
    0x103: lambda lane: lane + 3 if lane % 16 < 13 else None,  # row_shl:3
    0x111: lambda lane: lane - 1 if lane % 16 else None,  # row_shr:1
    0x118: lambda lane: lane - 8 if lane % 16 >= 8 else None,  # row_shr:8
    0x124: lambda lane: lane // 16 * 16 + (lane - 4) % 16,  # row_ror:4
    0x140: lambda lane: lane // 16 * 16 + 15 - lane % 16,  # row_mirror
    0x141: lambda lane: lane // 8 * 8 + 7 - lane % 8,  # row_half_mirror
    0x155: lambda lane: lane // 16 * 16 + 5,  # row_newbcast:5
}
CDNA: dict[int, Callable[[int], int | None]] = {
    0x138: lambda lane: lane - 1 if lane else None,  # wave_shr:1
    0x142: lambda lane: lane // 16 * 16 - 1 if lane >= 16 else None,  # row_bcast:15
    0x143: lambda lane: 31 if lane >= 32 else None,  # row_bcast:31
}


@pytest.mark.parametrize("control", [*CONTROLS, *CDNA])
@pytest.mark.parametrize("exec_bits", [None, 0xFFFF_0000_FF0F_1235])
@pytest.mark.parametrize("zero", [0, 1])
def test_controls(control: int, exec_bits: int | None, zero: int) -> None:
    """A lane without a source keeps its value, or takes 0 for it with bound_ctrl."""
    for target in ("gfx942",) if control in CDNA else ("gfx942", "gfx1100"):
        wave = make_wave(target, exec_bits=exec_bits)
        a, b, before = wave.v[1].copy(), wave.v[2].copy(), wave.v[7].copy()
        execute(wave, "VOP2_DPP16", "v_xor_b32", vdst="v7", vsrc0="v1", vsrc1="v2", dpp=control, bc=zero, **ALL)
        for lane in range(wave.lanes):
            source = {**CONTROLS, **CDNA}[control](lane)
            readable = source is not None and wave.exec >> source & 1
            if not wave.exec >> lane & 1 or not (readable or zero):
                assert wave.v[7][lane] == before[lane]
            else:
                assert wave.v[7][lane] == (int(a[source]) if readable and source is not None else 0) ^ int(b[lane])


def test_masks_of_rows_and_banks() -> None:
    wave = make_wave("gfx942")
    before = wave.v[7].copy()
    execute(wave, "VOP1_DPP16", "v_mov_b32", vdst="v7", vsrc0="v1", dpp=0xE4, row_mask=0b1010, bank_mask=0b0011)
    written = np.array([lane // 16 % 2 == 1 and lane % 16 < 8 for lane in range(64)])
    np.testing.assert_array_equal(wave.v[7], np.where(written, wave.v[1], before))


def test_fetching_inactive_lanes() -> None:
    wave = make_wave("gfx1100", exec_bits=1)
    before = wave.v[7].copy()
    fields = {"vdst": "v7", "vsrc0": "v1", "dpp": 0x1B, **ALL}
    execute(wave, "VOP1_DPP16", "v_mov_b32", **fields)
    np.testing.assert_array_equal(wave.v[7], before)
    execute(wave, "VOP1_DPP16", "v_mov_b32", fi=1, **fields)
    assert wave.v[7][0] == wave.v[1][3]


def test_a_wave_reduction_by_dpp() -> None:
    """The sum over a wave as LLVM makes it: row_shr 1, 2, 4, 8, then row_bcast 15 and 31."""
    wave = make_wave("gfx942")
    wave.v[1] = np.arange(64, dtype=np.uint32)
    for control, rows in ((0x111, 15), (0x112, 15), (0x114, 15), (0x118, 15), (0x142, 0b1010), (0x143, 0b1100)):
        fields = {"dpp": control, "row_mask": rows, "bank_mask": 15}
        execute(wave, "VOP2_DPP16", "v_add_u32", vdst="v1", vsrc0="v1", vsrc1="v1", bc=int(control < 0x140), **fields)
    assert wave.v[1][63] == sum(range(64))


def test_float_modifiers_and_accumulation() -> None:
    wave = make_wave("gfx942")
    wave.f[1][...], wave.f[2][...], wave.f[3][...] = np.arange(64), 2.0, 1.0
    execute(wave, "VOP2_DPP16", "v_fmac_f32", vdst="v3", vsrc0="v1", vsrc1="v2", dpp=0x1B, src0_neg=1, **ALL)
    np.testing.assert_array_equal(wave.f[3], 1 - 2.0 * (np.arange(64) ^ 3))


def test_eight_lanes() -> None:
    wave = make_wave("gfx1201")
    chosen = [7, 0, 3, 3, 1, 6, 2, 5]
    selectors = {f"lane_sel_{place}": lane for place, lane in enumerate(chosen)}
    execute(wave, "VOP1_DPP8", "v_mov_b32", vdst="v7", vsrc0="v1", **selectors)
    wanted = [wave.v[1][lane // 8 * 8 + chosen[lane % 8]] for lane in range(32)]
    np.testing.assert_array_equal(wave.v[7], wanted)
    wave.set_exec(0xFF)
    execute(wave, "VOP1_DPP8", "v_mov_b32", vdst="v7", vsrc0="v1", **selectors)
    wave.set_exec(1)
    with pytest.raises(Unmodelled, match="inactive"):
        execute(wave, "VOP1_DPP8", "v_mov_b32", vdst="v7", vsrc0="v1", **selectors)
    wave.v[7] = 0
    execute(wave, "VOP1_DPP8", "v_mov_b32", vdst="v7", src0="dpp8fi", vsrc0="v1", **selectors)
    assert wave.v[7][0] == wave.v[1][7] and not wave.v[7][1:].any()


def test_controls_of_other_architectures_are_refused() -> None:
    for target, control in (("gfx1100", 0x142), ("gfx942", 0x161), ("gfx942", 0x100)):
        with pytest.raises(Unmodelled, match="DPP"):
            execute(make_wave(target), "VOP1_DPP16", "v_mov_b32", vdst="v7", vsrc0="v1", dpp=control, **ALL)
