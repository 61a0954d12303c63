"""Counts of decoded instructions; what names say of kinds and widths is what the simulator executes."""

from __future__ import annotations

import pytest

import kernelwright.simulator.instructions.model  # noqa: F401  (fills the table of semantics)
from kernelwright.files.counts.instruction_set import instruction_set
from kernelwright.files.counts.line import Line, access_of, is_transcendental, kind_of
from kernelwright.files.counts.mix import mix_of
from kernelwright.simulator.counting.lines import line_of
from kernelwright.simulator.instructions.memory.transfer import DS_LOADS, DS_STORES, LOADS, STORES
from kernelwright.simulator.instructions.semantics import find, names
from kernelwright.simulator.instructions.vector.floating.transcendental import NAMES
from kernelwright.simulator.testing.instructions import assemble


@pytest.mark.parametrize(
    ("target", "encoding", "name", "fields", "expected"),
    [
        ("gfx942", "DS", "ds_read_b128", {}, ("read 16", 1)),
        ("gfx942", "DS", "ds_read_u16_d16_hi", {}, ("read 2", 1)),
        ("gfx942", "DS", "ds_read2st64_b64", {}, ("read 8", 2)),
        ("gfx942", "DS", "ds_write2_b32", {}, ("write 4", 2)),
        ("gfx942", "DS", "ds_write_b8_d16_hi", {}, ("write 1", 1)),
        ("gfx942", "DS", "ds_bpermute_b32", {}, ("bpermute", 1)),
        ("gfx942", "DS", "ds_add_u32", {}, ("add", 1)),
        ("gfx950", "DS", "ds_read_b64_tr_b16", {}, ("read transposed 8", 1)),
        ("gfx1201", "DS", "ds_load_2addr_b64", {}, ("read 8", 2)),
        ("gfx1201", "DS", "ds_store_b64", {}, ("write 8", 1)),
        ("gfx942", "MUBUF", "buffer_load_dwordx4", {}, ("load 16", 1)),
        ("gfx942", "MUBUF", "buffer_load_dword", {"lds": 1}, ("load to LDS 4", 1)),
        ("gfx942", "MUBUF", "buffer_load_short_d16", {}, ("load 2", 1)),
        ("gfx942", "MUBUF", "buffer_store_dwordx2", {}, ("store 8", 1)),
        ("gfx942", "MUBUF", "buffer_atomic_add", {}, ("atomic", 1)),
        ("gfx942", "GLOBAL", "global_load_dwordx3", {}, ("load 12", 1)),
        ("gfx950", "GLOBAL", "global_load_lds_dwordx4", {}, ("load to LDS 16", 1)),
        ("gfx1201", "VGLOBAL", "global_store_b128", {}, ("store 16", 1)),
    ],
)
def test_accesses_by_width(
    target: str, encoding: str, name: str, fields: dict[str, int], expected: tuple[str, int]
) -> None:
    assert access_of(line_of(assemble(target, encoding, name, **fields))) == expected


def test_counts_and_clocks_add_up() -> None:
    instructions = [
        (assemble("gfx942", "VOP3P_MFMA", "v_mfma_f32_32x32x8_f16"), 4),
        (assemble("gfx942", "VOP2", "v_add_u32"), 3),
        (assemble("gfx942", "VOP1", "v_exp_f32"), 2),
        (assemble("gfx942", "DS", "ds_read_b128"), 5),
        (assemble("gfx942", "DS", "ds_write2_b64"), 1),
        (assemble("gfx942", "MUBUF", "buffer_load_dwordx4"), 2),
        (assemble("gfx942", "SOP2", "s_add_u32"), 1),
        (assemble("gfx942", "SOPP", "s_waitcnt"), 2),
        (assemble("gfx942", "SOPP", "s_barrier"), 1),
        (assemble("gfx942", "SOPP", "s_cbranch_scc1"), 1),
    ]
    mix = mix_of([(line_of(one), times) for one, times in instructions], instruction_set("gfx942"))
    assert (mix.instructions, mix.matrix, mix.matrix_cycles) == (22, 4, 4 * 32)
    assert (mix.vector, mix.vector_cycles, mix.scalar) == (5, 3 * 4 + 2 * 16, 1)
    assert (mix.lds, mix.lds_cycles) == ({"read 16": 5, "write 8": 2}, 5 * 8 + 2 * 4)
    assert (mix.memory, mix.waits, mix.barriers, mix.branches) == ({"load 16": 2}, 2, 1, 1)


def test_a_matrix_instruction_without_known_clocks_leaves_their_sum_open() -> None:
    known = assemble("gfx942", "VOP3P_MFMA", "v_mfma_f32_32x32x8_f16")
    unknown = assemble("gfx942", "VOP3P_MFMA", "v_mfma_f64_16x16x4_f64")
    for order in ([(known, 1), (unknown, 1)], [(unknown, 1), (known, 1)]):
        mix = mix_of([(line_of(one), times) for one, times in order], instruction_set("gfx942"))
        assert (mix.matrix, mix.matrix_cycles) == (2, None)


def test_names_tell_the_kind_of_every_modelled_instruction() -> None:
    modelled = [(name, entry.kind) for name in names() if (entry := find(name))]
    assert len(modelled) > 1000
    assert [name for name, kind in modelled if kind_of(name) != kind] == []


def test_names_tell_transcendental_functions() -> None:
    assert {name for name in names() if is_transcendental(name)} == set(NAMES) & set(names())


@pytest.mark.parametrize(
    ("prefixes", "table"),
    [
        (("buffer_load", "global_load"), LOADS),
        (("buffer_store", "global_store"), STORES),
        (("ds_read", "ds_load"), DS_LOADS),
        (("ds_write", "ds_store"), DS_STORES),
    ],
)
def test_names_tell_the_width_of_every_transfer(prefixes: tuple[str, ...], table: dict[str, object]) -> None:
    for prefix in prefixes:
        way = prefix.rpartition("_")[2].replace("ds_load", "read")
        if prefix.startswith("ds_"):
            way = "read" if way in ("read", "load") else "write"
        for name, kind in table.items():
            assert access_of(Line(f"{prefix}_{name}")) == (f"{way} {kind.nbytes}", 1)  # type: ignore[attr-defined]
