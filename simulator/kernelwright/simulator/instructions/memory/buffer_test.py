"""Buffer instructions: offsets, widths, halves, the range check of the descriptor, loads to LDS."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.machine.memory import Memory, Region
from kernelwright.simulator.machine.scratch import BUFFER, Scratch
from kernelwright.simulator.machine.wave import Wave
from kernelwright.simulator.testing.instructions import execute, make_region, make_wave

BASE = 0x7A00_0000_0100
BYTES = 8192
DATA = np.random.default_rng(0).integers(0, 256, BYTES, np.uint8)
ARCHES = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"]
FLAGS = {"gfx1100": 0x31004000, "gfx1201": 0x31004000}
SPARSE = 0xDEB7_1EF3_0F5A_9C31


def set_up(arch: str, exec_bits: int | None = None, records: int = 0xFFFF_FFFF) -> tuple[Wave, Region]:
    """Descriptor in s8; offsets in v0; data from v4."""
    wave = make_wave(arch, exec_bits=exec_bits)
    region = make_region(BASE, DATA, name="X")
    wave.memory, wave.lds = Memory([region]), Lds(4096)
    wave.s[8:12] = [BASE & 0xFFFFFFFF, BASE >> 32, records, FLAGS.get(arch, 0x00020000)]
    return wave, region


def go(wave: Wave, name: str, offset: int = 0, soffset: Any = None, **fields: Any) -> None:
    fields = {"vdata": "v4", "vaddr": "v0", "offen": 1} | fields
    if wave.target.name == "gfx1201":
        soffset = "s124" if soffset is None else soffset
        execute(wave, "VBUFFER", f"buffer_{name}", rsrc=8, ioffset=offset, soffset=soffset, **fields)
    else:
        soffset = 0 if soffset is None else soffset
        execute(wave, "MUBUF", f"buffer_{name}", srsrc="s8", offset=offset, soffset=soffset, **fields)


def words_at(memory: np.ndarray, at: int, dwords: int, records: int) -> np.ndarray:
    """What hardware loads: dwords that end behind ``records`` are 0."""
    inside = [at + 4 * step + 4 <= records for step in range(dwords)]
    return np.array(
        [memory[at + 4 * n : at + 4 * n + 4].copy().view(np.uint32)[0] if ok else 0 for n, ok in enumerate(inside)],
        np.uint32,
    )


def wide(arch: str, verb: str, dwords: int) -> str:
    return f"{verb}_dword{f'x{dwords}' if dwords > 1 else ''}" if arch.startswith("gfx9") else f"{verb}_b{32 * dwords}"


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("exec_bits", [None, SPARSE, 0])
@pytest.mark.parametrize("dwords", [1, 2, 3, 4])
@pytest.mark.parametrize(("offset", "soffset"), [(0, None), (4095, None), (16, "s3")])
@pytest.mark.parametrize("records", [BYTES, 256, 0])
def test_loads_and_stores(
    arch: str, exec_bits: int | None, dwords: int, offset: int, soffset: str | None, records: int
) -> None:
    wave, region = set_up(arch, exec_bits, records)
    wave.s[3] = 64
    scalar = 64 if soffset else 0
    own = 16 * np.random.default_rng(1).permutation(wave.lanes) + (1 if offset % 16 else 0)
    if scalar and not arch.startswith("gfx9"):
        own[own + offset + 16 > records - scalar] = records  # whether soffset counts is another test's matter
    wave.u[0][:] = own
    at = own + offset + scalar
    before = wave.v.copy()
    go(wave, wide(arch, "load", dwords), offset, soffset)
    for lane in range(wave.lanes):
        wanted = words_at(DATA, at[lane], dwords, records) if wave.mask[lane] else before[4 : 4 + dwords, lane]
        np.testing.assert_array_equal(wave.v[4 : 4 + dwords, lane], wanted)
    before[4 : 4 + dwords] = wave.v[4 : 4 + dwords]
    np.testing.assert_array_equal(wave.v, before)

    wave.v[4:8] = np.random.default_rng(2).integers(0, 1 << 32, (4, wave.lanes), np.uint32)
    wanted = DATA.copy()
    go(wave, wide(arch, "store", dwords), offset, soffset)
    for lane in np.flatnonzero(wave.mask).tolist():
        for step in range(dwords):
            first = at[lane] + 4 * step
            if first + 4 <= records:
                wanted[first : first + 4] = wave.v[4 + step, lane : lane + 1].view(np.uint8)
    np.testing.assert_array_equal(region.data, wanted)


SMALL = [
    ("ubyte", "u8", np.uint8, None),
    ("sbyte", "i8", np.int8, None),
    ("ushort", "u16", np.uint16, None),
    ("sshort", "i16", np.int16, None),
    ("ubyte_d16_hi", "d16_hi_u8", np.uint8, 1),
    ("sbyte_d16", "d16_i8", np.int8, 0),
    ("short_d16", "d16_b16", np.uint16, 0),
    ("short_d16_hi", "d16_hi_b16", np.uint16, 1),
]


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize(("old", "new", "dtype", "half"), SMALL)
def test_small_loads(arch: str, old: str, new: str, dtype: Any, half: int | None) -> None:
    wave, _ = set_up(arch, SPARSE, 60)
    size = np.dtype(dtype).itemsize
    at = np.arange(wave.lanes) * size
    wave.u[0][:] = at
    before = wave.u[4].copy()
    go(wave, f"load_{old if arch.startswith('gfx9') else new}")
    values = np.where(at + size <= 60, DATA[: size * wave.lanes].view(dtype), 0)
    if half is None:
        wanted: Any = values.astype(np.int32).view(np.uint32)
    else:
        low = values.astype(np.int16).view(np.uint16).astype(np.uint32)
        wanted = (before & 0xFFFF) | low << 16 if half else (before & 0xFFFF0000) | low
    np.testing.assert_array_equal(wave.u[4], np.where(wave.mask, wanted, before))


@pytest.mark.parametrize("arch", ["gfx942", "gfx1100", "gfx1201"])
@pytest.mark.parametrize(
    ("old", "new", "dtype", "high"),
    [
        ("byte", "b8", np.uint8, 0),
        ("short", "b16", np.uint16, 0),
        ("byte_d16_hi", "d16_hi_b8", np.uint8, 1),
        ("short_d16_hi", "d16_hi_b16", np.uint16, 1),
    ],
)
def test_small_stores(arch: str, old: str, new: str, dtype: Any, high: int) -> None:
    wave, region = set_up(arch, SPARSE, 60)
    size = np.dtype(dtype).itemsize
    at = np.random.default_rng(1).permutation(wave.lanes) * size
    wave.u[0][:] = at
    go(wave, f"store_{old if arch.startswith('gfx9') else new}")
    wanted = DATA.copy()
    for lane in np.flatnonzero(wave.mask & (at + size <= 60)):
        wanted.view(dtype)[at[lane] // size] = (int(wave.u[4][lane]) >> 16 * high) & ((1 << 8 * size) - 1)
    np.testing.assert_array_equal(region.data, wanted)


@pytest.mark.parametrize("arch", ARCHES)
def test_memory_within_the_range_must_be_registered(arch: str) -> None:
    wave, _ = set_up(arch)
    wave.u[0][:] = np.arange(wave.lanes) * 4
    wave.u[0][7] = BYTES - 4
    with pytest.raises(
        Trap, match="a load of 8 bytes outside all registered memory, 4 bytes past the end of X"
    ) as caught:
        go(wave, wide(arch, "load", 2))
    assert caught.value.address == BASE + BYTES - 4
    with pytest.raises(Trap, match="a store of 8 bytes outside"):
        go(wave, wide(arch, "store", 2))
    wave.memory = Memory([make_region(BASE, DATA, writable=False, name="X")])
    go(wave, wide(arch, "load", 1))
    with pytest.raises(Trap, match="read-only memory: X"):
        go(wave, wide(arch, "store", 1))
    wave.memory = Memory([])
    with pytest.raises(Trap, match="no memory is registered"):
        go(wave, wide(arch, "load", 1))


@pytest.mark.parametrize("exec_bits", [None, SPARSE])
@pytest.mark.parametrize("offen", [0, 1])
def test_scratch_of_gfx90a(exec_bits: int | None, offen: int) -> None:
    """Through its descriptor; the scalar offset is in bytes of the whole wave."""
    wave, _ = set_up("gfx90a", exec_bits)
    wave.s[8:12] = BUFFER
    with pytest.raises(Trap, match="of which the kernel has none"):
        go(wave, "load_dword", offen=0)
    wave.scratch = Scratch(256, 64)
    wave.s[3] = 64 * 32
    wave.u[0][:] = own = np.arange(64) % 5 * 4
    data = wave.v[4:8].copy()
    poison = wave.scratch.words[-1].copy()
    go(wave, "store_dwordx4", 64, "s3", offen=offen)
    for lane in range(64):
        first = (64 + 32 + (own[lane] if offen else 0)) // 4
        wanted = data[:, lane] if wave.mask[lane] else poison[:4]
        np.testing.assert_array_equal(wave.scratch.words[first : first + 4, lane], wanted)
    wave.v[4:8] = 0
    go(wave, "load_dwordx4", 64, "s3", offen=offen)
    np.testing.assert_array_equal(wave.v[4:8], np.where(wave.mask, data, 0))
    go(wave, "store_short", 66, "s3", offen=offen)
    go(wave, "load_ushort", 66, "s3", offen=offen)
    np.testing.assert_array_equal(wave.v[4], np.where(wave.mask, data[0] & 0xFFFF, 0))
    with pytest.raises(Trap, match="a lane has 256 bytes"):
        go(wave, "load_dword", 256, offen=0)
    wave.s[3] = 4
    with pytest.raises(Unmodelled, match="scalar offset 4"):
        go(wave, "load_dword", 0, "s3", offen=0)


def test_two_regions() -> None:
    wave, _ = set_up("gfx942")
    other = make_region(BASE + 0x4000, DATA[::-1])
    wave.memory = Memory([*wave.memory.regions, other])
    at = np.where(np.arange(64) % 2, 0x4000, 0) + np.arange(64) * 4
    wave.u[0][:] = at
    go(wave, "load_dword")
    both = np.concatenate([DATA, np.zeros(0x4000 - BYTES, np.uint8), DATA[::-1]]).view(np.uint32)
    np.testing.assert_array_equal(wave.u[4], both[at // 4])


def test_offset_of_the_instruction_only() -> None:
    wave, _ = set_up("gfx942", SPARSE)
    before = wave.u[4].copy()
    go(wave, "load_dword", 8, 12, offen=0)
    np.testing.assert_array_equal(wave.u[4], np.where(wave.mask, DATA[20:24].view(np.uint32)[0], before))


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_what_documents_disagree_on_is_refused(arch: str) -> None:
    """On RDNA: whether the scalar offset takes part in the range check."""
    wave, _ = set_up(arch, records=256)
    wave.s[3] = 64
    wave.u[0][:] = np.arange(wave.lanes) * 4
    go(wave, "load_b32", 0, "s3")
    wave.u[0][5] = 200
    with pytest.raises(Unmodelled, match="only its scalar offset"):
        go(wave, "load_b32", 0, "s3")


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
@pytest.mark.parametrize(("word", "value"), [(1, 0x80100000), (3, 0x80800000)])
@pytest.mark.parametrize("idxen", [0, 1])
def test_other_descriptors_are_refused(arch: str, word: int, value: int, idxen: int) -> None:
    wave, _ = set_up(arch)
    wave.u[0][:] = wave.u[1][:] = 0
    wave.s[8 + word] = value | (BASE >> 32 if word == 1 else 0)
    with pytest.raises(Unmodelled, match="descriptor of this kind"):
        go(wave, wide(arch, "load", 1), idxen=idxen)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("offen", [0, 1])
@pytest.mark.parametrize("dwords", [1, 4])
def test_structured_buffers(arch: str, offen: int, dwords: int) -> None:
    """Records of 24 bytes; num_records counts them; the scalar offset does not count."""
    wave, region = set_up(arch, SPARSE, 29)
    wave.s[9] |= 24 << 16
    wave.s[11] = FLAGS.get(arch, 0x00020000) & ~(3 << 28)
    wave.s[3] = 512
    index = np.random.default_rng(1).permutation(wave.lanes)
    own = np.arange(wave.lanes) % 2 * 4 if offen else np.zeros(wave.lanes, np.int64)
    wave.u[0][:], wave.u[1][:] = index, own
    before = wave.v.copy()
    go(wave, wide(arch, "load", dwords), 4, "s3", idxen=1, offen=offen)
    for lane in np.flatnonzero(wave.mask).tolist():
        at = 512 + 24 * index[lane] + 4 + own[lane]
        wanted = DATA[at : at + 4 * dwords].view(np.uint32) if index[lane] < 29 else 0
        np.testing.assert_array_equal(wave.v[4 : 4 + dwords, lane], wanted)
    before[4 : 4 + dwords] = wave.v[4 : 4 + dwords]
    np.testing.assert_array_equal(wave.v, before)
    wave.v[4:8] = np.random.default_rng(2).integers(0, 1 << 32, (4, wave.lanes), np.uint32)
    go(wave, wide(arch, "store", dwords), 4, "s3", idxen=1, offen=offen)
    stored = DATA.copy()
    for lane in np.flatnonzero(wave.mask & (index < 29)).tolist():
        at = 512 + 24 * index[lane] + 4 + own[lane]
        stored[at : at + 4 * dwords] = np.ascontiguousarray(wave.v[4 : 4 + dwords, lane]).view(np.uint8)
    np.testing.assert_array_equal(region.data, stored)
    with pytest.raises(Unmodelled, match="behind its record of 24 bytes"):
        go(wave, wide(arch, "load", dwords), 24, "s3", idxen=1, offen=offen)


@pytest.mark.parametrize(("arch", "suffix", "dwords"), [
    ("gfx90a", "dword", 1), ("gfx942", "dword", 1), ("gfx950", "dword", 1), ("gfx950", "dwordx3", 3),
    ("gfx950", "dwordx4", 4), ("gfx942", "ushort", 1), ("gfx942", "sbyte", 1),
])  # fmt: skip
@pytest.mark.parametrize("exec_bits", [None, SPARSE])
def test_loads_to_lds(arch: str, suffix: str, dwords: int, exec_bits: int | None) -> None:
    """Lane l's place is M0 + offset + l * size; its source has the offset too. What is out of range gives 0."""
    wave, _ = set_up(arch, exec_bits, 900)
    wave.s[124] = 256
    at = np.random.default_rng(4).permutation(64) * 16
    wave.u[0][:] = at
    before, empty = wave.v.copy(), wave.lds.words.copy()
    go(wave, f"load_{suffix}", 32, lds=1)
    np.testing.assert_array_equal(wave.v, before)
    for lane in np.flatnonzero(wave.mask):
        source = at[lane] + 32
        if "dword" in suffix:
            wanted = words_at(DATA, source, dwords, 900)
        else:
            small = np.int8 if suffix == "sbyte" else np.uint16
            value = DATA[source : source + 2].view(small)[0] if source + np.dtype(small).itemsize <= 900 else 0
            wanted = np.array([value]).astype(np.int32).view(np.uint32)
        first = (256 + 32 + 4 * dwords * lane) // 4
        np.testing.assert_array_equal(wave.lds.words[first : first + dwords], wanted)
        empty[first : first + dwords] = wanted
    np.testing.assert_array_equal(wave.lds.words, empty)


def test_loads_to_lds_are_checked() -> None:
    wave, _ = set_up("gfx942")
    wave.u[0][:] = 0
    wave.s[124] = 4096 - 128
    with pytest.raises(Trap, match="outside LDS") as caught:
        go(wave, "load_dword", lds=1)
    assert caught.value.address == 4096
    wave.s[124] = 2
    with pytest.raises(Trap, match="M0 is no LDS address"):
        go(wave, "load_dword", lds=1)
    for name in ("load_dwordx4", "load_short_d16"):
        with pytest.raises(Unmodelled, match="to LDS on gfx942"):
            go(wave, name, lds=1)
