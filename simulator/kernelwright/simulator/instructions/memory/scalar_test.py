"""Scalar loads: addresses of every form, widths, bounds, descriptors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.machine.memory import Memory
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_region, make_wave

BASE = 0x1234_5678_0000
DATA = np.random.default_rng(0).integers(0, 1 << 32, 64, np.uint32)
ARCHES = ["gfx90a", "gfx942", "gfx1100", "gfx1201"]
WIDTHS = [(1, "dword", "b32"), (2, "dwordx2", "b64"), (4, "dwordx4", "b128"), (8, "dwordx8", "b256")]
WIDTHS += [(16, "dwordx16", "b512")]


def set_up(arch: str) -> Wave:
    wave = make_wave(arch)
    wave.memory = Memory([make_region(BASE, DATA, writable=False, name="arguments")])
    wave.write_scalar64(8, BASE)
    wave.s[3] = 24
    return wave


def go(wave: Wave, name: str, offset: int = 0, register: str | None = None, **fields: Any) -> None:
    """From s8 to s16 and following."""
    if wave.target.name == "gfx1201":
        fields |= {"ioffset": offset & 0xFFFFFF, "soffset": register or "s124"}
    elif wave.target.name == "gfx1100":
        fields |= {"offset": offset & 0x1FFFFF, "soffset": register or "s124"}
    else:
        fields = {"offset": offset & 0x1FFFFF, "imm": 1} | fields
        fields |= {"soffset": register, "soffset_en": 1} if register else {"soffset": "s0"}
    execute(wave, "SMEM", name, **({"sdata": "s16", "sbase": "s8"} | fields))


def check(wave: Wave, before: list[int], wanted: Any) -> None:
    before[16 : 16 + len(wanted)] = [int(word) for word in wanted]
    assert wave.s == before


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("dwords", "old", "new"), WIDTHS)
@pytest.mark.parametrize(("offset", "register"), [(0, None), (12, None), (-4, "s3"), (40, "s3")])
def test_loads(arch: str, dwords: int, old: str, new: str, offset: int, register: str | None) -> None:
    wave = set_up(arch)
    before = list(wave.s)
    go(wave, f"s_load_{old if arch.startswith('gfx9') else new}", offset, register)
    first = (offset + (24 if register else 0)) // 4
    check(wave, before, DATA[first : first + dwords])


def test_gfx9_offset_in_a_register_only() -> None:
    wave = set_up("gfx942")
    before = list(wave.s)
    go(wave, "s_load_dwordx2", 3, imm=0)
    check(wave, before, DATA[6:8])
    with pytest.raises(Unmodelled):
        go(wave, "s_load_dwordx2", 3, imm=0, soffset_en=1)


@pytest.mark.parametrize(("name", "dtype"), [("u8", "u1"), ("i8", "i1"), ("u16", "u2"), ("i16", "i2")])
def test_small_loads_of_gfx12(name: str, dtype: str) -> None:
    for offset in range(0, 24, np.dtype(dtype).itemsize):
        wave = set_up("gfx1201")
        before = list(wave.s)
        go(wave, f"s_load_{name}", offset)
        value = int(DATA.view(dtype)[offset // np.dtype(dtype).itemsize])
        check(wave, before, [value & 0xFFFFFFFF])


@pytest.mark.parametrize("arch", ARCHES)
def test_bounds(arch: str) -> None:
    wave = set_up(arch)
    name = "s_load_dwordx4" if arch.startswith("gfx9") else "s_load_b128"
    go(wave, name, 240)
    for offset in (244, -4):
        with pytest.raises(Trap, match="a scalar load of 16 bytes outside all registered memory") as caught:
            go(wave, name, offset)
        assert caught.value.address == BASE + offset


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("offset", "inside"), [(0, 4), (16, 4), (28, 3), (36, 1), (40, 0), (400, 0)])
def test_buffer_loads(arch: str, offset: int, inside: int) -> None:
    wave = set_up(arch)
    wave.s[9] = (BASE >> 32) | 20 << 16  # 2 records of 20 bytes
    wave.s[10] = 2
    before = list(wave.s)
    go(wave, "s_buffer_load_dwordx4" if arch.startswith("gfx9") else "s_buffer_load_b128", offset)
    check(wave, before, [*DATA[offset // 4 :][:inside], *[0] * (4 - inside)])


def test_buffer_that_ends_within_a_dword() -> None:
    wave = set_up("gfx942")
    wave.s[9:11] = [BASE >> 32, 14]
    go(wave, "s_buffer_load_dwordx2", 0)
    with pytest.raises(Unmodelled):
        go(wave, "s_buffer_load_dwordx2", 8)
