"""Clocks of a turn by unit, what bounds it, and the files of instruction sets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernelwright.files.counts.instruction_set import instruction_set, names
from kernelwright.files.counts.line import Line
from kernelwright.files.counts.mix import Mix, mix_of
from kernelwright.files.counts.turn import bound, clocks, memory_bytes

LOOP = Mix(
    matrix=16, matrix_cycles=512, vector=39, vector_cycles=156, lds_cycles=96, memory={"load 16": 4, "atomic": 1}
)


def test_units_that_several_simds_share_take_their_clocks_times_the_simds() -> None:
    known = instruction_set("gfx942")
    assert memory_bytes(LOOP, known.lanes) == 4 * 16 * 64
    memory = round(4096 * 4 / 53)
    assert clocks(LOOP, known, 4) == {"matrix": 512, "vector": 156, "lds": 384, "memory": memory}
    assert clocks(LOOP, known, 4, 32.5) == {"matrix": 512, "vector": 156, "lds": 514, "memory": memory}


def test_what_no_source_states_is_left_out() -> None:
    assert "memory" not in (clocks(LOOP, instruction_set("gfx1201"), 2) or {})
    assert clocks(replace(LOOP, matrix_cycles=None), instruction_set("gfx942"), 4) is None


@pytest.mark.parametrize(
    ("taken", "unit"),
    [
        ({"matrix": 512, "vector": 156, "lds": 512}, "matrix"),
        ({"matrix": 512, "vector": 520, "lds": 512}, "vector"),
        ({"matrix": 512, "vector": 156, "lds": 514, "memory": 514}, "lds"),
        ({"matrix": 512, "vector": 156, "lds": 514, "memory": 515}, "memory"),
        (None, None),
    ],
)
def test_the_unit_that_is_busy_longest_bounds(taken: dict[str, int] | None, unit: str | None) -> None:
    assert bound(taken) == unit


def test_each_instruction_set_has_a_file_with_sources_and_phases_of_every_width() -> None:
    assert names() == {"gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"}
    widths = {(way, nbytes) for way in ("read", "write") for nbytes in (4, 8, 12, 16)}
    for name in names():
        assert set(instruction_set(name).lds) == widths
    with pytest.raises(KeyError, match="gfx943"):
        instruction_set("gfx943")


def test_narrow_operands_multiply_twice_as_fast() -> None:
    known, name = instruction_set("gfx950"), "v_mfma_f32_32x32x64_f8f6f4"
    mixes = [mix_of([(Line(name, narrow=narrow), 3)], known) for narrow in (False, True)]
    assert [mix.matrix_cycles for mix in mixes] == [3 * 64, 3 * 32]
