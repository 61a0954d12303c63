"""Global and flat instructions, and scratch: addresses, widths, halves, masks, bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.machine.memory import PRIVATE_APERTURE, SHARED_APERTURE, Memory, Region
from kernelwright.simulator.machine.scratch import Scratch
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_region, make_wave

BASE = 0x7F12_3456_7000
ARCHES = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
ODD = 0x9249_2492_4924_9249  # some lanes
DATA = np.random.default_rng(0).integers(0, 256, 4096, np.uint8)


def names(arch: str, old: str, new: str) -> str:
    return old if arch.startswith("gfx9") else new


def set_up(arch: str, exec_bits: int | None = None) -> tuple[Wave, Region]:
    wave = make_wave(arch, exec_bits=exec_bits)
    region = make_region(BASE, DATA, name="X")
    wave.memory = Memory([region, make_region(BASE + 0x10000, DATA[:64], writable=False, name="R")])
    wave.lds = Lds(1024)
    return wave, region


def point(wave: Wave, row: int, addresses: Any) -> None:
    wide = np.asarray(addresses, np.uint64)
    wave.u[row][:], wave.u[row + 1][:] = wide.astype(np.uint32), wide >> np.uint64(32)


def go(wave: Wave, segment: str, name: str, offset: int = 0, saddr: str | None = "off", **fields: Any) -> None:
    """Address in v0 and v1, data in v4 and following."""
    arch = wave.target.name
    scalar = {"off": "s127" if arch.startswith("gfx9") else "s124"}.get(saddr or "", saddr)
    if arch == "gfx1201":
        fields = {"vaddr": "v0", "vsrc": "v4", "vdst": "v4", "ioffset": offset & 0xFFFFFF, "saddr": scalar} | fields
        segment = "V" + segment
    else:
        fields = {"addr": "v0", "data": "v4", "vdst": "v4", "offset": offset & 0x1FFF, "saddr": scalar} | fields
    execute(wave, segment, f"{segment.lower().removeprefix('v')}_{name}", **fields)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("exec_bits", [None, ODD, 0])
@pytest.mark.parametrize("dwords", [1, 2, 3, 4])
@pytest.mark.parametrize("unaligned", [0, 1])
def test_loads_and_stores_of_dwords(arch: str, exec_bits: int | None, dwords: int, unaligned: int) -> None:
    wave, region = set_up(arch, exec_bits)
    suffix = names(arch, "dword" + (f"x{dwords}" if dwords > 1 else ""), f"b{32 * dwords}")
    at = 16 * np.random.default_rng(1).permutation(wave.lanes) + 64 + unaligned
    point(wave, 0, BASE + 2048 + at)
    before = wave.v.copy()
    go(wave, "GLOBAL", f"load_{suffix}", offset=-2048)
    for lane in range(wave.lanes):
        wanted = DATA[at[lane] :][: 4 * dwords].copy().view(np.uint32)
        got = wave.v[4 : 4 + dwords, lane]
        assert (got == (wanted if wave.mask[lane] else before[4 : 4 + dwords, lane])).all()
    before[4 : 4 + dwords] = wave.v[4 : 4 + dwords]
    np.testing.assert_array_equal(wave.v, before)

    wave.v[4:8] = np.random.default_rng(2).integers(0, 1 << 32, (4, wave.lanes), np.uint32)
    go(wave, "GLOBAL", f"store_{suffix}", offset=-2048 + 1024)
    wanted = DATA.copy()
    for lane in np.flatnonzero(wave.mask).tolist():
        wanted[1024 + at[lane] :][: 4 * dwords] = np.ascontiguousarray(wave.v[4 : 4 + dwords, lane]).view(np.uint8)
    np.testing.assert_array_equal(region.data, wanted)


SMALL = [  # gfx9's name, the later name, dtype, half
    ("ubyte", "u8", np.uint8, None),
    ("sbyte", "i8", np.int8, None),
    ("ushort", "u16", np.uint16, None),
    ("sshort", "i16", np.int16, None),
    ("ubyte_d16", "d16_u8", np.uint8, 0),
    ("sbyte_d16_hi", "d16_hi_i8", np.int8, 1),
    ("short_d16", "d16_b16", np.uint16, 0),
    ("short_d16_hi", "d16_hi_b16", np.uint16, 1),
]


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("segment", ["GLOBAL", "FLAT", "SCRATCH"])
@pytest.mark.parametrize(("old", "new", "dtype", "half"), SMALL)
def test_small_loads(arch: str, segment: str, old: str, new: str, dtype: Any, half: int | None) -> None:
    wave, _ = set_up(arch, ODD)
    lanes = wave.lanes
    at = np.arange(lanes) * 6 + (np.dtype(dtype).itemsize == 1)
    values = np.array([DATA[a : a + 2][: np.dtype(dtype).itemsize].copy().view(dtype)[0] for a in at])
    if segment == "SCRATCH":
        wave.scratch = Scratch(512, lanes)
        raw = np.ascontiguousarray(values)[:, None].view(np.uint8)
        wave.scratch.store(wave, wave.lane_ids, at, raw)
        wave.u[0][:] = at
    else:
        point(wave, 0, BASE + at)
    before = wave.u[4].copy()
    extra: dict[str, Any] = {"sve": 1} if segment == "SCRATCH" else {}
    go(wave, segment, f"load_{names(arch, old, new)}", **extra)
    if half is None:
        wanted: Any = values.astype(np.int32).view(np.uint32)
    else:
        low = values.astype(np.int16).view(np.uint16).astype(np.uint32)
        wanted = (before & 0xFFFF) | low << 16 if half else (before & 0xFFFF0000) | low
    np.testing.assert_array_equal(wave.u[4], np.where(wave.mask, wanted, before))


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("segment", ["GLOBAL", "FLAT", "SCRATCH"])
@pytest.mark.parametrize(
    ("old", "new", "nbytes", "high"),
    [
        ("byte", "b8", 1, 0),
        ("short", "b16", 2, 0),
        ("byte_d16_hi", "d16_hi_b8", 1, 1),
        ("short_d16_hi", "d16_hi_b16", 2, 1),
    ],
)
def test_small_stores(arch: str, segment: str, old: str, new: str, nbytes: int, high: int) -> None:
    wave, region = set_up(arch, ODD)
    at = np.arange(wave.lanes) * 6 + (nbytes == 1)
    if segment == "SCRATCH":
        wave.scratch = Scratch(512, wave.lanes)
        wave.scratch.words[:] = 0
        wave.u[0][:] = at
    else:
        region.data[:] = 0
        point(wave, 0, BASE + at)
    extra: dict[str, Any] = {"sve": 1} if segment == "SCRATCH" else {}
    go(wave, segment, f"store_{names(arch, old, new)}", **extra)
    kept = (wave.u[4] >> (16 * high)) & ((1 << 8 * nbytes) - 1)
    for lane in range(wave.lanes):
        if wave.scratch is not None:
            raw = wave.scratch.load(wave, np.array([lane]), at[lane : lane + 1], nbytes)[0]
            assert wave.mask[lane] or not wave.scratch.words[:, lane].any()
        else:
            raw = region.data[at[lane] :][:nbytes]
        assert int.from_bytes(raw.tobytes(), "little") == (int(kept[lane]) if wave.mask[lane] else 0)


@pytest.mark.parametrize("arch", ARCHES)
def test_scalar_base(arch: str) -> None:
    wave, _ = set_up(arch)
    wave.write_scalar64(8, BASE + 64)
    wave.u[0][:] = np.arange(wave.lanes) * 12
    go(wave, "GLOBAL", f"load_{names(arch, 'dword', 'b32')}", offset=-4, saddr="s8")
    np.testing.assert_array_equal(wave.u[4], DATA[60:][: 12 * wave.lanes].view(np.uint32)[::3])


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
def test_flat_addresses_reach_lds_too(arch: str) -> None:
    wave, _ = set_up(arch)
    wave.lds.words[:] = np.arange(256)
    in_lds = np.arange(wave.lanes) % 3 == 0
    at = np.arange(wave.lanes) * 4
    point(wave, 0, np.where(in_lds, (SHARED_APERTURE << 32) + at, BASE + at))
    wave.u[4][:] = 7
    go(wave, "FLAT", f"load_{names(arch, 'dword', 'b32')}", offset=8)
    wanted = np.where(in_lds, at // 4 + 2, DATA[8:][: 4 * wave.lanes].view(np.uint32))
    np.testing.assert_array_equal(wave.u[4], wanted)
    go(wave, "FLAT", f"store_{names(arch, 'byte', 'b8')}", offset=512)
    assert wave.lds.bytes[512] == wanted[0] & 255
    go(wave, "FLAT", f"store_{names(arch, 'dword', 'b32')}", offset=512)
    assert wave.lds.words[128 + 3] == wanted[3]
    go(wave, "FLAT", f"load_{names(arch, 'ubyte', 'u8')}")
    np.testing.assert_array_equal(wave.u[4][in_lds], at[in_lds] // 4)


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
def test_flat_addresses_reach_scratch_too(arch: str) -> None:
    wave, region = set_up(arch, ODD)
    private = np.arange(wave.lanes) % 2 == 0
    at = np.arange(wave.lanes) % 7 * 8
    point(wave, 0, np.where(private, (PRIVATE_APERTURE << 32) + at, BASE + 8 * np.arange(wave.lanes)))
    with pytest.raises(Trap, match="a flat access to scratch, of which the kernel has none"):
        go(wave, "FLAT", f"load_{names(arch, 'dword', 'b32')}")
    wave.scratch = Scratch(64, wave.lanes)
    data = wave.v[4:6].copy()
    go(wave, "FLAT", f"store_{names(arch, 'dwordx2', 'b64')}")
    for lane in range(wave.lanes):
        held = wave.scratch.words[at[lane] // 4 :][:2, lane] if private[lane] else region.words[2 * lane :][:2]
        assert (held == data[:, lane]).all() == bool(wave.mask[lane])
    wave.v[4:6] = 0
    go(wave, "FLAT", f"load_{names(arch, 'dwordx2', 'b64')}")
    np.testing.assert_array_equal(wave.v[4:6], np.where(wave.mask, data, 0))
    go(wave, "FLAT", f"store_{names(arch, 'byte', 'b8')}", offset=1)
    wave.v[4] = 0
    go(wave, "FLAT", f"load_{names(arch, 'ubyte', 'u8')}", offset=1)
    np.testing.assert_array_equal(wave.u[4], np.where(wave.mask, data[0] & 255, 0))


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize(("name", "operand"), [("src_shared_base", 235), ("src_private_base", 237)])
def test_apertures_are_operands(arch: str, name: str, operand: int) -> None:
    wave, _ = set_up(arch)
    execute(wave, "SOP1", "s_mov_b64", sdst="s4", ssrc0=f"s{operand}")
    wanted = SHARED_APERTURE if "shared" in name else PRIVATE_APERTURE
    assert wave.read_scalar64(4) == wanted << 32


@pytest.mark.parametrize("arch", ARCHES)
def test_bounds(arch: str) -> None:
    wave, _ = set_up(arch)
    load, store = (f"{verb}_{names(arch, 'dwordx2', 'b64')}" for verb in ("load", "store"))
    addresses = BASE + np.arange(wave.lanes) * 8
    addresses[3] = BASE + 4092
    point(wave, 0, addresses)
    with pytest.raises(
        Trap, match="a load of 8 bytes outside all registered memory, 4 bytes past the end of X"
    ) as caught:
        go(wave, "GLOBAL", load)
    assert caught.value.address == BASE + 4092
    wave.set_exec(wave.exec & ~8)
    go(wave, "GLOBAL", load)
    point(wave, 0, BASE + 0x10000 + np.arange(wave.lanes) % 8 * 8)
    go(wave, "GLOBAL", load)
    with pytest.raises(Trap, match="read-only memory: R"):
        go(wave, "GLOBAL", store)


@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
@pytest.mark.parametrize(("suffix", "dwords"), [("dword", 1), ("dwordx3", 3), ("dwordx4", 4), ("ubyte", 1)])
def test_global_loads_to_lds(arch: str, suffix: str, dwords: int) -> None:
    wave, _ = set_up(arch, ODD)
    wave.lds = Lds(8192)
    at = np.random.default_rng(3).permutation(64) * 16
    point(wave, 0, BASE + at)
    wave.s[124] = 64
    if dwords > 1 and arch == "gfx942":
        with pytest.raises(Unmodelled):
            go(wave, "GLOBAL", f"load_lds_{suffix}")
        return
    go(wave, "GLOBAL", f"load_lds_{suffix}", offset=32)
    for lane in range(64):
        got = wave.lds.words[(96 - 0 + 4 * dwords * lane) // 4 :][:dwords]
        nbytes = 1 if suffix == "ubyte" else 4 * dwords
        source = DATA[at[lane] + 32 :][:nbytes]
        wanted = source.astype(np.uint32) if nbytes == 1 else source.copy().view(np.uint32)
        assert (got == wanted).all() == bool(wave.mask[lane])


@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.parametrize("exec_bits", [None, ODD])
@pytest.mark.parametrize(("saddr", "sve"), [("off", 0), ("s9", 0), ("off", 1), ("s9", 1)])
def test_scratch_addresses(arch: str, exec_bits: int | None, saddr: str, sve: int) -> None:
    wave, _ = set_up(arch, exec_bits)
    wave.scratch = Scratch(256, wave.lanes)
    stored = wave.v[4:8].copy()
    wave.s[9] = 32
    wave.u[0][:] = np.arange(wave.lanes) % 5 * 4
    go(wave, "SCRATCH", f"store_{names(arch, 'dwordx4', 'b128')}", offset=64, saddr=saddr, sve=sve)
    poison = wave.scratch.words[-1].copy()
    for lane in range(wave.lanes):
        first = (64 + (32 if saddr != "off" else 0) + (int(wave.u[0][lane]) if sve else 0)) // 4
        wanted = stored[:, lane] if wave.mask[lane] else poison[:4]
        assert (wave.scratch.words[first : first + 4, lane] == wanted).all()
    before = wave.v.copy()
    go(wave, "SCRATCH", f"load_{names(arch, 'dwordx4', 'b128')}", offset=64, saddr=saddr, sve=sve, vdst="v20")
    np.testing.assert_array_equal(wave.v[20:24], np.where(wave.mask, stored, before[20:24]))


def test_scratch_bounds() -> None:
    wave, _ = set_up("gfx942")
    with pytest.raises(Trap, match="of which the kernel has none"):
        go(wave, "SCRATCH", "load_dword")
    wave.scratch = Scratch(64, 64)
    for offset in (64, -4):
        with pytest.raises(Trap, match="a lane has 64 bytes") as caught:
            go(wave, "SCRATCH", "load_dword", offset=offset)
        assert caught.value.address == offset
    wave.u[0][:] = 61
    with pytest.raises(Trap, match="outside scratch"):
        go(wave, "SCRATCH", "store_dword", sve=1)
    wave, _ = set_up("gfx90a")
    with pytest.raises(Unmodelled):
        go(wave, "SCRATCH", "load_dword")


def test_transposing_loads() -> None:
    """A 16x16 matrix, row by row, so addressed that each lane gets half a column."""
    wave, _ = set_up("gfx1201")
    stored = DATA[:512].view(np.uint16).reshape(16, 16)
    lane = np.arange(32)
    point(wave, 0, BASE + 2 * ((8 * (lane // 16) + lane % 8) * 16 + lane // 8 % 2 * 8))
    go(wave, "GLOBAL", "load_tr_b128")
    got = np.ascontiguousarray(wave.v[4:8].T).view(np.uint16)
    for one in range(32):
        np.testing.assert_array_equal(got[one], stored[8 * (one // 16) :, one % 16][:8])
    wave.set_exec(7)
    with pytest.raises(Trap, match="all lanes"):
        go(wave, "GLOBAL", "load_tr_b128")
