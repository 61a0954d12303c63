from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_wave


def dual(wave: Wave, x: str, y: str, *, vdsty: int, **fields: object) -> None:
    """The destination of the second half is encoded without its lowest bit, which is not that of the first's."""
    execute(wave, "VOPD", x, opx=x, opy=y, vdsty=vdsty >> 1, **fields)


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_both_halves_read_before_either_writes(target: str) -> None:
    wave = make_wave(target, exec_bits=0x0FFF_FF0F)
    before = wave.v.copy()
    fields: dict[str, Any] = {"vdstx": "v2", "srcx0": "v3", "vsrcx1": "v5", "vdsty": 3, "srcy0": "v2", "vsrcy1": "v4"}
    dual(wave, "v_dual_mov_b32", "v_dual_mov_b32", **fields)
    np.testing.assert_array_equal(wave.v[2], np.where(wave.mask, before[3], before[2]))
    np.testing.assert_array_equal(wave.v[3], np.where(wave.mask, before[2], before[3]))


def test_accumulators_that_read_each_other() -> None:
    wave = make_wave("gfx1100")
    for row in range(2, 8):
        wave.f[row][...] = np.arange(32) + row
    a, b, c, d = (wave.f[row].copy() for row in (2, 3, 4, 5))
    fields: dict[str, Any] = {"vdstx": "v2", "srcx0": "v3", "vsrcx1": "v4", "vdsty": 3, "srcy0": "v2", "vsrcy1": "v5"}
    dual(wave, "v_dual_fmac_f32", "v_dual_fmac_f32", **fields)
    np.testing.assert_array_equal(wave.f[2], a + b * c)
    np.testing.assert_array_equal(wave.f[3], b + a * d)


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_floats_and_integers_side_by_side(target: str) -> None:
    wave = make_wave(target)
    for row in range(2, 8):
        wave.f[row][...] = np.arange(32) + row
    before = wave.f[2].copy()
    fields: dict[str, Any] = {"vdstx": "v2", "srcx0": "v4", "vsrcx1": "v5", "vdsty": 9, "srcy0": "v6", "vsrcy1": "v7"}
    words = wave.v[6] + wave.v[7]
    dual(wave, "v_dual_fmac_f32", "v_dual_add_nc_u32", **fields)
    np.testing.assert_array_equal(wave.f[2], before + wave.f[4] * wave.f[5])
    np.testing.assert_array_equal(wave.v[9], words)


def test_a_shared_literal_and_vcc() -> None:
    wave = make_wave("gfx1100")
    mask = wave.s[106]
    fields: dict[str, Any] = {"vdstx": "v2", "srcx0": "v4", "vsrcx1": "v5", "vdsty": 3, "srcy0": "v6", "vsrcy1": "v7"}
    take = np.array([bool(mask >> lane & 1) for lane in range(32)])
    wanted = np.where(take, wave.v[5], wave.v[4])
    dual(wave, "v_dual_cndmask_b32", "v_dual_lshlrev_b32", **{**fields, "srcy0": 3})
    np.testing.assert_array_equal(wave.v[2], wanted)
    np.testing.assert_array_equal(wave.v[3], wave.v[7] << np.uint32(3))
