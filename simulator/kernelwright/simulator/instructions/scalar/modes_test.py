from __future__ import annotations

import numpy as np
import pytest

import kernelwright.simulator.instructions.model  # noqa: F401
from kernelwright.simulator.code.decode import decode_one
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import Unmodelled
from kernelwright.simulator.testing.instructions import execute, make_wave, run


def hwreg(number: int, low: int, bits: int) -> int:
    return number | low << 6 | bits - 1 << 11


def test_bits_are_replaced_and_read_back() -> None:
    wave = make_wave("gfx942", mode=0xF0)
    wave.s[5] = 0b1010
    execute(wave, "SOPK", "s_setreg_b32", sdst="s5", simm16=hwreg(1, 0, 4))
    assert wave.mode == 0xFA
    execute(wave, "SOPK", "s_getreg_b32", sdst="s6", simm16=hwreg(1, 4, 4))
    assert wave.s[6] == 0xF
    execute(wave, "SOPK", "s_getreg_b32", sdst="s6", simm16=hwreg(1, 0, 32))
    assert wave.s[6] == 0xFA


@pytest.mark.parametrize("target", ["gfx942", "gfx1100", "gfx1201"])
def test_the_assemblers_literal_form(target: str) -> None:
    """s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0: arithmetic then flushes fp32 denormals."""
    wave = make_wave(target, mode=0xF0)
    opcode = {"gfx942": 20, "gfx1100": 19, "gfx1201": 19}[target]
    code = (0xB << 28 | opcode << 23 | hwreg(1, 4, 2)).to_bytes(4, "little") + bytes(4)
    run(wave, decode_one(code, TARGETS[target], 0))
    assert wave.mode == 0xC0
    wave.f[1][...] = np.float32(2**-130)
    execute(wave, "VOP2", "v_add_f32", vdst="v2", src0="v1", vsrc1="v1")
    assert (wave.f[2] == 0).all()


def test_short_forms() -> None:
    wave = make_wave("gfx1100", mode=0xF0)
    execute(wave, "SOPP", "s_round_mode", simm16=3)
    execute(wave, "SOPP", "s_denorm_mode", simm16=12)
    assert wave.mode == 0xC3


def test_what_is_not_modelled_is_refused() -> None:
    with pytest.raises(Unmodelled, match="hardware register 2"):
        execute(make_wave("gfx942"), "SOPK", "s_getreg_b32", sdst="s6", simm16=hwreg(2, 0, 32))
    for target, low in (("gfx942", 28), ("gfx1201", 9)):
        wave = make_wave(target)
        wave.s[5] = 1
        with pytest.raises(Unmodelled, match="MODE"):
            execute(wave, "SOPK", "s_setreg_b32", sdst="s5", simm16=hwreg(1, low, 1))
