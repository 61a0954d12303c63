"""Counters that others measured, against what the rules say of the addresses of the same kernels.

Six kernels transpose a [65536 x 256] matrix of fp16 through LDS, in tiles of 64 x 32 and workgroups of four waves.
A. H. Ghamarian, "LDS Bank Conflicts on CDNA" (2026-04-21; ROCm/composable_kernel 393ebc1a, bank_conflict_slides.html
and assets/bank_conflict_numbers.csv), has SQ_LDS_BANK_CONFLICT and SQ_INSTS_LDS by rocprofv3. The addresses below
follow from the tile distributions in example/ck_tile/99_toy_tutorial/tutorial_14_bank_conflict_scenarios.

The slides name an MI300. The sixth kernel's source says that it was measured on an MI355X, and its layout depends on
the number of banks. With the layout for 32 banks, lanes of a phase need two dwords of each bank they use.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kernelwright.files.counts.conflicts import conflicts
from kernelwright.files.counts.instruction_set import instruction_set

TILE_M, TILE_K, PACK = 64, 32, 8
TILES = 65536 * 256 // (TILE_M * TILE_K)
WAVES, LANES = 4, 64
Place = Callable[[int, int], int]
"""Row and column of a tile → byte in LDS."""
Access = tuple[str, int, list[int]]
"""``read`` or ``write``, bytes per lane, and the byte of each lane."""


def row_major(stride: int) -> Place:
    return lambda m, k: 2 * (m * stride + k)


def column_major(m: int, k: int) -> int:
    return 2 * (k * TILE_M + m)


def swizzled(layers: int, stride: int) -> Place:
    """``layers`` rows side by side, packs of eight elements exchanged by XOR with the number of their row of layers."""

    def place(m: int, k: int) -> int:
        row, pack = m // layers, m % layers * (TILE_K // PACK) + k // PACK
        return 2 * (row * stride * layers + (pack ^ row % (TILE_K // PACK * layers)) * PACK + k % PACK)

    return place


def lanes(wave: int) -> Iterator[tuple[int, int]]:
    return ((wave, lane) for lane in range(LANES))


def rows(wave: int, lane: int) -> tuple[int, int]:
    """What a lane loads from memory: eight columns from here on."""
    return 16 * wave + lane // 4, lane % 4 * PACK


def columns(wave: int, lane: int) -> tuple[int, int]:
    """What a lane stores to memory: eight rows from here on; neighbours have the next eight."""
    return lane % 8 * PACK, 8 * wave + lane // 8


def rotated(wave: int, lane: int) -> tuple[int, int]:
    """The same of the sixth kernel, where neighbours have the next column."""
    return lane // 8 * PACK, 8 * wave + lane % 8


def wide(way: str, place: Place, wave: int, of: Callable[[int, int], tuple[int, int]]) -> Iterator[Access]:
    """16 bytes of a lane at once."""
    yield way, 16, [place(*of(*one)) for one in lanes(wave)]


def by_element(
    way: str, place: Place, wave: int, of: Callable[[int, int], tuple[int, int]], down: bool
) -> Iterator[Access]:
    """Eight accesses of two bytes, along a row or ``down`` a column."""
    for at in range(PACK):
        starts = [of(*one) for one in lanes(wave)]
        yield way, 2, [place(m + at * down, k + at * (not down)) for m, k in starts]


def in_pairs(place: Place, wave: int) -> Iterator[list[Access]]:
    """16 bytes at addresses that are multiples of four alone: two ``ds_write2_b32``."""
    for first in (0, 2):
        yield [("write", 4, [place(*rows(*one)) + 4 * (first + at) for one in lanes(wave)]) for at in (0, 1)]


def one_each(accesses: Iterator[Access]) -> list[list[Access]]:
    return [[access] for access in accesses]


def row_major_kernel(place: Place, wave: int) -> list[list[Access]]:
    return one_each(wide("write", place, wave, rows)) + one_each(by_element("read", place, wave, columns, down=True))


def column_major_kernel(place: Place, wave: int) -> list[list[Access]]:
    written = one_each(by_element("write", place, wave, rows, down=False))
    return written + one_each(wide("read", place, wave, columns))


def padded_kernel(place: Place, wave: int) -> list[list[Access]]:
    return [*in_pairs(place, wave), *one_each(by_element("read", place, wave, columns, down=True))]


def crossing_kernel(place: Place, wave: int) -> list[list[Access]]:
    """Each wave reads eight columns, a lane eight elements of its row."""
    written = one_each(wide("write", place, wave, rows))
    return written + one_each(wide("read", place, wave, lambda wave, lane: (lane, 8 * wave)))


def rotated_kernel(place: Place, wave: int) -> list[list[Access]]:
    return one_each(wide("write", place, wave, rows)) + one_each(by_element("read", place, wave, rotated, down=True))


@pytest.mark.parametrize(
    ("instructions", "kernel", "place", "conflict_clocks", "lds_instructions"),
    [
        ("gfx942", row_major_kernel, row_major(TILE_K), 3_670_016, 294_912),
        ("gfx942", column_major_kernel, column_major, 1_572_864, 294_912),
        ("gfx942", padded_kernel, row_major(TILE_K + 2), 786_432, 327_680),
        ("gfx942", row_major_kernel, swizzled(2, TILE_K + 1), 0, 294_912),
        ("gfx942", crossing_kernel, swizzled(2, TILE_K), 0, 65_536),
        ("gfx950", rotated_kernel, swizzled(4, TILE_K), 0, 294_912),
    ],
    ids=["row major", "column major", "padding", "XOR and padding", "XOR", "stores along M"],
)
def test_published_counters(
    instructions: str,
    kernel: Callable[[Place, int], list[list[Access]]],
    place: Place,
    conflict_clocks: int,
    lds_instructions: int,
) -> None:
    known = instruction_set(instructions)
    executed = [one for wave in range(WAVES) for one in kernel(place, wave)]
    added = [
        conflicts(addresses, range(LANES), nbytes, known.phases(way, nbytes))[1]
        for one in executed
        for way, nbytes, addresses in one
    ]
    assert (TILES * sum(added), TILES * len(executed)) == (conflict_clocks, lds_instructions)


@pytest.mark.parametrize(("place"), [row_major(TILE_K), column_major, row_major(TILE_K + 2), swizzled(2, TILE_K + 1)])
def test_each_element_has_its_own_place(place: Place) -> None:
    assert len({place(m, k) for m in range(TILE_M) for k in range(TILE_K)}) == TILE_M * TILE_K
