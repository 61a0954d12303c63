from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.machine.registers import to_bits, to_mask
from kernelwright.simulator.machine.words import POISON
from kernelwright.simulator.testing.instructions import make_wave


@pytest.mark.parametrize("lanes", [32, 64])
@given(st.integers(0, (1 << 64) - 1))
@settings(deadline=None)
def test_masks_are_bits(lanes: int, bits: int) -> None:
    bits &= (1 << lanes) - 1
    mask = to_mask(bits, lanes)
    assert mask.tolist() == [digit == "1" for digit in format(bits, f"0{lanes}b")[::-1]]
    assert to_bits(mask) == bits


@pytest.mark.parametrize("arch", TARGETS)
def test_exec_null_and_pairs(arch: str) -> None:
    wave = make_wave(arch)
    target = TARGETS[arch]
    wave.write_scalar64(126, 0x1_0000_0005)
    assert wave.exec == (0x1_0000_0005 if target.lanes == 64 else 5)
    wave.write_scalar(126, 3)
    assert wave.exec & 0xFFFFFFFF == 3 and wave.mask[:3].tolist() == [True, True, False]
    wave.write_scalar64(4, 0xAABBCCDD_11223344)
    assert (wave.s[4], wave.s[5], wave.read_scalar64(4)) == (0x11223344, 0xAABBCCDD, 0xAABBCCDD_11223344)
    if target.null is not None:
        wave.write_scalar(target.null, 7)
        assert wave.read_scalar(target.null) == wave.read_scalar64(target.null) == 0
    wave.write_mask(106, (1 << target.lanes) - 2)
    assert wave.read_mask(106) == (1 << target.lanes) - 2


def test_rows_are_views_of_one_array() -> None:
    wave = make_wave("gfx942")
    wave.f[300][5] = 1.0
    assert wave.v[300, 5] == 0x3F800000 == wave.u[300][5] and wave.i[300][5] == 0x3F800000
    wave.reset()
    assert (wave.v == POISON).all() and wave.s[3] == POISON and wave.full
