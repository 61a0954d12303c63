"""DS loads and stores: widths, halves, pairs, offsets, masks, bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_wave

ARCHES = ["gfx90a", "gfx950", "gfx1100", "gfx1201"]
DATA = np.random.default_rng(0).integers(0, 256, 65536, np.uint8)
SPARSE = 0x8E4D_2B19_C0A6_357F


def set_up(arch: str, exec_bits: int | None = None) -> Wave:
    wave = make_wave(arch, exec_bits=exec_bits)
    wave.lds = Lds(65536)
    wave.lds.bytes[:] = DATA
    return wave


def go(wave: Wave, verb: str, name: str, offset: int = 0, **fields: Any) -> None:
    """Address in v0, data in v4 (and v8)."""
    later = {"read": "load", "write": "store"}
    verb = verb if wave.target.name.startswith("gfx9") else later[verb]
    if verb in ("read", "load"):
        fields |= {"vdst": "v4"}
    fields = {"offset0": offset & 255, "offset1": offset >> 8} | fields
    execute(wave, "DS", f"ds_{verb}{name}", addr="v0", data0="v4", data1="v8", **fields)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("exec_bits", [None, SPARSE, 0])
@pytest.mark.parametrize("dwords", [1, 2, 3, 4])
@pytest.mark.parametrize("offset", [0, 65535 - 4096 - 14])
def test_one_address(arch: str, exec_bits: int | None, dwords: int, offset: int) -> None:
    wave = set_up(arch, exec_bits)
    at = np.random.default_rng(1).permutation(wave.lanes) * 16
    wave.u[0][:] = at
    before = wave.v.copy()
    go(wave, "read", f"_b{32 * dwords}", offset)
    for lane in np.flatnonzero(wave.mask):
        before[4 : 4 + dwords, lane] = DATA[at[lane] + offset :][: 4 * dwords].copy().view(np.uint32)
    np.testing.assert_array_equal(wave.v, before)
    wave.v[4:8] = np.random.default_rng(2).integers(0, 1 << 32, (4, wave.lanes), np.uint32)
    go(wave, "write", f"_b{32 * dwords}", offset)
    wanted = DATA.copy()
    for lane in np.flatnonzero(wave.mask):
        raw = np.ascontiguousarray(wave.v[4 : 4 + dwords, lane]).view(np.uint8)
        wanted[at[lane] + offset :][: 4 * dwords] = raw
    np.testing.assert_array_equal(wave.lds.bytes, wanted)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("name", "dtype", "half"),
    [
        ("u8", np.uint8, None),
        ("i8", np.int8, None),
        ("u16", np.uint16, None),
        ("i16", np.int16, None),
        ("u8_d16", np.uint8, 0),
        ("i8_d16_hi", np.int8, 1),
        ("u16_d16", np.uint16, 0),
        ("u16_d16_hi", np.uint16, 1),
    ],
)
def test_small_loads(arch: str, name: str, dtype: Any, half: int | None) -> None:
    wave = set_up(arch, SPARSE)
    wave.u[0][:] = at = np.arange(wave.lanes) * 2
    before = wave.u[4].copy()
    go(wave, "read", f"_{name}", 6)
    values = np.array([DATA[a + 6 : a + 8].view(dtype)[0] for a in at])
    if half is None:
        wanted: Any = values.astype(np.int32).view(np.uint32)
    else:
        low = values.astype(np.int16).view(np.uint16).astype(np.uint32)
        wanted = (before & 0xFFFF) | low << 16 if half else (before & 0xFFFF0000) | low
    np.testing.assert_array_equal(wave.u[4], np.where(wave.mask, wanted, before))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(
    ("name", "nbytes", "high"), [("b8", 1, 0), ("b16", 2, 0), ("b8_d16_hi", 1, 1), ("b16_d16_hi", 2, 1)]
)
def test_small_stores(arch: str, name: str, nbytes: int, high: int) -> None:
    wave = set_up(arch, SPARSE)
    wave.u[0][:] = at = np.arange(wave.lanes) * 2
    go(wave, "write", f"_{name}", 6)
    wanted = DATA.copy()
    for lane in np.flatnonzero(wave.mask):
        wanted[at[lane] + 6 :][:nbytes] = wave.v[4, lane : lane + 1].view(np.uint8)[2 * high :][:nbytes]
    np.testing.assert_array_equal(wave.lds.bytes, wanted)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("exec_bits", [None, SPARSE])
@pytest.mark.parametrize("dwords", [1, 2])
@pytest.mark.parametrize("stride", [1, 64])
def test_two_addresses(arch: str, exec_bits: int | None, dwords: int, stride: int) -> None:
    wave = set_up(arch, exec_bits)
    gfx9 = arch.startswith("gfx9")
    middle = ("2st64" if stride == 64 else "2") if gfx9 else ("_2addr_stride64" if stride == 64 else "_2addr")
    name, unit = f"{middle}_b{32 * dwords}", 4 * dwords * stride
    at = np.random.default_rng(1).permutation(wave.lanes) * 16
    wave.u[0][:] = at
    before = wave.v.copy()
    first, second = 5, 60
    go(wave, "read", name, offset0=first, offset1=second)
    for lane in np.flatnonzero(wave.mask):
        for row, offset in ((4, first), (4 + dwords, second)):
            source = at[lane] + offset * unit
            before[row : row + dwords, lane] = DATA[source : source + 4 * dwords].view(np.uint32)
    np.testing.assert_array_equal(wave.v, before)
    go(wave, "write", name, offset0=first, offset1=second)
    wanted = DATA.copy()
    for row, offset in ((4, first), (8, second)):
        for lane in np.flatnonzero(wave.mask):
            raw = np.ascontiguousarray(wave.v[row : row + dwords, lane]).view(np.uint8)
            wanted[at[lane] + offset * unit :][: 4 * dwords] = raw
    np.testing.assert_array_equal(wave.lds.bytes, wanted)


def test_a_pair_may_load_over_its_address() -> None:
    wave = set_up("gfx942")
    wave.u[0][:] = at = np.arange(64) * 8
    execute(wave, "DS", "ds_read2_b32", addr="v0", vdst="v0", offset1=1)
    words = DATA.view(np.uint32)
    np.testing.assert_array_equal(wave.u[0], words[at // 4])
    np.testing.assert_array_equal(wave.u[1], words[at // 4 + 1])


def test_accumulator_registers() -> None:
    wave = set_up("gfx942")
    wave.u[0][:] = np.arange(64) * 4
    go(wave, "read", "_b32", acc=1)
    np.testing.assert_array_equal(wave.u[256 + 4], DATA.view(np.uint32)[:64])


@pytest.mark.parametrize("arch", ARCHES)
def test_bounds(arch: str) -> None:
    wave = set_up(arch)
    wave.u[0][:] = 0
    wave.u[0][3] = 65534
    for verb, name in (("read", "_b32"), ("write", "_b32"), ("read", "_b128")):
        with pytest.raises(Trap, match="outside LDS") as caught:
            go(wave, verb, name)
        assert caught.value.address == 65534
    go(wave, "read", "_u16")
    with pytest.raises(Trap, match="the workgroup has 65536 bytes"):
        go(wave, "read", "_u16", 1)
    wave.set_exec(wave.exec & ~8)
    go(wave, "read", "_b32")


@pytest.mark.parametrize("arch", ARCHES)
def test_addresses_wrap_at_32_bits(arch: str) -> None:
    wave = set_up(arch)
    wave.u[0][:] = np.arange(wave.lanes) * 4 - np.uint32(64)
    go(wave, "read", "_b32", 64)
    np.testing.assert_array_equal(wave.u[4], DATA.view(np.uint32)[: wave.lanes])
    go(wave, "read", "2_b32" if arch.startswith("gfx9") else "_2addr_b32", offset0=16, offset1=17)
    np.testing.assert_array_equal(wave.u[5], DATA.view(np.uint32)[1 : wave.lanes + 1])
    with pytest.raises(Trap, match="outside LDS") as caught:
        go(wave, "read", "_b32")
    assert caught.value.address == 0xFFFFFFC0


def test_global_data_share_is_refused() -> None:
    with pytest.raises(Unmodelled, match="global data share"):
        go(set_up("gfx942"), "read", "_b32", gds=1)
