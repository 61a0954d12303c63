"""Phases of LDS: every pair of lanes, broadcasts, and conflicts that the sources describe."""

from __future__ import annotations

import itertools

import pytest

from kernelwright.files.counts.conflicts import conflicts
from kernelwright.files.counts.instruction_set import Phases, instruction_set

SETS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
WIDTHS = [(way, nbytes) for way in ("read", "write") for nbytes in (4, 8, 12, 16)]
# As published: the lanes of each phase below 32; those from 32 on are alike.
SWIZZLED = {
    ("gfx942", 16): ["0-3 20-23", "4-7 16-19", "8-11 28-31", "12-15 24-27"],
    ("gfx950", 12): ["0-3 20-23", "4-7 16-19", "8-11 28-31", "12-15 24-27"],
    ("gfx950", 16): ["0-3 12-15 20-27", "4-11 16-19 28-31"],
}
CONSECUTIVE = {
    ("gfx942", "read", 4): 32,
    ("gfx942", "read", 8): 16,
    ("gfx942", "write", 4): 32,
    ("gfx942", "write", 8): 16,
    ("gfx942", "write", 16): 8,
    ("gfx950", "read", 4): 64,
    ("gfx950", "read", 8): 32,
    ("gfx950", "write", 8): 16,
}


def phases(instructions: str, way: str, nbytes: int) -> Phases:
    return instruction_set(instructions).phases(way, nbytes)


def together(instructions: str, way: str, nbytes: int, first: int, second: int) -> bool:
    """Whether two lanes conflict if they need different rows of the same banks."""
    banks = phases(instructions, way, nbytes).banks
    _, extra = conflicts([0, 4 * banks * 8], [first, second], nbytes, phases(instructions, way, nbytes))
    return extra > 0


def published(text: str) -> set[int]:
    ends = [part.split("-") for part in text.split()]
    return {lane for low, high in ends for lane in range(int(low), int(high) + 1)}


@pytest.mark.parametrize(("instructions", "nbytes"), SWIZZLED)
def test_every_pair_of_lanes_of_the_published_swizzled_reads(instructions: str, nbytes: int) -> None:
    lower = [published(text) for text in SWIZZLED[instructions, nbytes]]
    groups = [{lane + half for lane in group} for half in (0, 32) for group in lower]
    pairs = list(itertools.combinations(range(64), 2))
    assert len(pairs) == 2016
    for first, second in pairs:
        same = any({first, second} <= group for group in groups)
        assert together(instructions, "read", nbytes, first, second) == same, (first, second)


@pytest.mark.parametrize(("instructions", "way", "nbytes"), CONSECUTIVE)
def test_every_pair_of_lanes_of_phases_of_neighbours(instructions: str, way: str, nbytes: int) -> None:
    size = CONSECUTIVE[instructions, way, nbytes]
    for first, second in itertools.combinations(range(64), 2):
        assert together(instructions, way, nbytes, first, second) == (first // size == second // size)


@pytest.mark.parametrize(("way", "nbytes"), WIDTHS)
@pytest.mark.parametrize("name", SETS)
def test_each_lane_is_in_one_phase_and_side_by_side_there_are_no_conflicts(name: str, way: str, nbytes: int) -> None:
    lanes = range(instruction_set(name).lanes)
    served = phases(name, way, nbytes)
    assert sorted(itertools.chain(*served.groups)) == list(lanes)
    clocks, extra = conflicts([0] * len(lanes), lanes, nbytes, served)  # all of them the same: broadcast
    assert extra == 0 and clocks == len(served.groups)
    assert conflicts([lane * (nbytes if nbytes != 12 else 16) for lane in lanes], lanes, nbytes, served)[1] == 0


def test_what_no_source_states_is_marked() -> None:
    stated = {(name, *width) for name in ("gfx942", "gfx950") for width in WIDTHS}
    stated -= {("gfx942", "read", 12), ("gfx942", "write", 12)}
    stated -= {("gfx950", "write", 4), ("gfx950", "write", 12), ("gfx950", "write", 16)}
    for name in SETS:
        for width in WIDTHS:
            assert phases(name, *width).assumed == ((name, *width) not in stated)


@pytest.mark.parametrize(("stride", "ways"), [(4, 1), (8, 2), (16, 4), (128, 32)])
def test_strides_of_dwords_conflict_as_often_as_they_meet_a_bank(stride: int, ways: int) -> None:
    clocks, extra = conflicts([lane * stride for lane in range(64)], range(64), 4, phases("gfx942", "read", 4))
    assert (clocks, extra) == (2 * ways, 2 * (ways - 1))


def test_inactive_lanes_take_no_phase() -> None:
    served = phases("gfx942", "write", 16)
    assert conflicts([0, 16], [8, 9], 16, served) == (1, 0)
    assert conflicts([0, 128], [8, 9], 16, served) == (2, 1)
