"""Permutations between lanes and transposing reads, against the pseudo code of the ISA guides."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.simulator.errors import Trap, Unmodelled
from kernelwright.simulator.machine.lds import Lds
from kernelwright.simulator.testing.instructions import execute, make_wave

ARCHES = ["gfx90a", "gfx942", "gfx1100", "gfx1201"]
SPARSE = 0x8E4D_2B19_C0A6_357F


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("exec_bits", [None, SPARSE])
@pytest.mark.parametrize("offset", [0, 8])
def test_bpermute(arch: str, exec_bits: int | None, offset: int) -> None:
    wave = make_wave(arch, exec_bits=exec_bits)
    before = wave.v.copy()
    execute(wave, "DS", "ds_bpermute_b32", addr="v0", data0="v1", vdst="v2", offset0=offset)
    for lane in np.flatnonzero(wave.mask):
        source = (int(before[0, lane]) + offset & 0xFFFFFFFF) // 4 % wave.lanes
        before[2, lane] = before[1, source] if wave.mask[source] else 0
    np.testing.assert_array_equal(wave.v, before)


def test_bpermute_that_reads_inactive_lanes() -> None:
    wave = make_wave("gfx1201", exec_bits=SPARSE)
    wanted = np.where(wave.mask, wave.v[1, wave.v[0] // 4 % 32], wave.v[2])
    execute(wave, "DS", "ds_bpermute_fi_b32", addr="v0", data0="v1", vdst="v2")
    np.testing.assert_array_equal(wave.v[2], wanted)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("exec_bits", [None, SPARSE])
def test_permute(arch: str, exec_bits: int | None) -> None:
    wave = make_wave(arch, exec_bits=exec_bits)
    before = wave.v.copy()
    execute(wave, "DS", "ds_permute_b32", addr="v0", data0="v1", vdst="v2", offset0=4)
    moved = np.zeros(wave.lanes, np.uint32)
    for lane in np.flatnonzero(wave.mask):
        moved[(int(before[0, lane]) + 4 & 0xFFFFFFFF) // 4 % wave.lanes] = before[1, lane]
    before[2] = np.where(wave.mask, moved, before[2])
    np.testing.assert_array_equal(wave.v, before)


def swizzled(pattern: int, lane: int) -> int:
    """The lane that a lane reads."""
    group, low = lane & ~31, lane & 31
    if pattern >= 0xC000:
        mask, turn = pattern % 32, pattern // 32 % 32
        turned = (low - turn if pattern // 1024 % 2 else low + turn) % 32
        return group + (low & mask) + (turned & (31 - mask))
    if pattern >= 0x8000:
        return lane // 4 * 4 + (pattern >> 2 * (lane % 4)) % 4
    return group + (((low & pattern % 32) | pattern // 32 % 32) ^ pattern // 1024 % 32)


@pytest.mark.parametrize("arch", ARCHES)
@pytest.mark.parametrize("exec_bits", [None, SPARSE])
@pytest.mark.parametrize("pattern", [0x041F, 0x401F, 0x0018, 0x3C60, 0x80B1, 0x801B, 0xC0A0, 0xC4E3])
def test_swizzle(arch: str, exec_bits: int | None, pattern: int) -> None:
    wave = make_wave(arch, exec_bits=exec_bits)
    before = wave.v.copy()
    execute(wave, "DS", "ds_swizzle_b32", addr="v1", vdst="v2", offset0=pattern & 255, offset1=pattern >> 8)
    for lane in np.flatnonzero(wave.mask):
        source = swizzled(pattern, int(lane))
        before[2, lane] = before[1, source] if wave.mask[source] else 0
    np.testing.assert_array_equal(wave.v, before)


def test_fft_swizzles_are_refused() -> None:
    with pytest.raises(Unmodelled, match="FFT"):
        execute(make_wave("gfx942"), "DS", "ds_swizzle_b32", addr="v1", vdst="v2", offset0=1, offset1=0xE0)


@pytest.mark.parametrize(("bits", "rows"), [(16, 4), (8, 8)])
def test_transposing_reads(bits: int, rows: int) -> None:
    """Each sixteen lanes hold a matrix of 16 columns, row by row; each lane gets a column."""
    wave = make_wave("gfx950")
    wave.lds = Lds(4096)
    matrices = np.random.default_rng(0).integers(0, 1 << bits, (4, rows, 16)).astype(f"u{bits // 8}")
    wave.lds.bytes[128 : 128 + matrices.nbytes] = matrices.reshape(-1).view(np.uint8)
    wave.u[0][:] = np.arange(64) * 8
    execute(wave, "DS", f"ds_read_b64_tr_b{bits}", addr="v0", vdst="v2", offset0=128)
    got = np.ascontiguousarray(wave.v[2:4].T).view(matrices.dtype)
    np.testing.assert_array_equal(got.reshape(4, 16, rows), matrices.transpose(0, 2, 1))
    wave.set_exec(1)
    with pytest.raises(Trap, match="all lanes"):
        execute(wave, "DS", f"ds_read_b64_tr_b{bits}", addr="v0", vdst="v2")


def test_transposing_reads_are_gfx950s() -> None:
    with pytest.raises(Unmodelled):
        execute(make_wave("gfx942"), "DS", "ds_read_b64_tr_b16", addr="v0", vdst="v2")


@pytest.mark.parametrize(
    ("arch", "encoding", "name"),
    [("gfx942", "MUBUF", "buffer_inv"), ("gfx942", "MUBUF", "buffer_wbl2"), ("gfx1201", "VGLOBAL", "global_wb")],
)
def test_cache_control_changes_nothing(arch: str, encoding: str, name: str) -> None:
    wave = make_wave(arch)
    before = wave.v.copy()
    execute(wave, encoding, name)
    np.testing.assert_array_equal(wave.v, before)
