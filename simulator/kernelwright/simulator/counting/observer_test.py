"""What is counted of launches, against what the lines of the kernels say; static counts are those executed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.simulator import Checks, Counts
from kernelwright.simulator.counting.static import count_image
from kernelwright.simulator.run.device import configure
from kernelwright.simulator.run.launch import Simulator
from kernelwright.simulator.testing.objects import Kernel, Line, assemble_text, make_object, run_lines

TURNS = 5
# s10 counts turns; v0 is the work-item. A loop of nine instructions.
LOOP: list[Line] = [
    ("SOP1", "s_mov_b32", {"sdst": "s10", "ssrc0": TURNS}),
    ("VOP2", "v_lshlrev_b32", {"vdst": "v1", "src0": 4, "vsrc1": "v0"}),
    ("VOP1", "v_mov_b32", {"vdst": "v4", "src0": 0}),
    ("VOP1", "v_mov_b32", {"vdst": "v5", "src0": 0}),
    ("VOP3P_MFMA", "v_mfma_f32_16x16x16_f16", {"vdst": "v8", "src0": "v4", "src1": "v4", "src2": 0}),
    ("VOP2", "v_add_u32", {"vdst": "v2", "src0": 1, "vsrc1": "v1"}),
    ("DS", "ds_write_b128", {"addr": "v1", "data0": "v8"}),
    ("DS", "ds_read_b128", {"addr": "v1", "vdst": "v12"}),
    ("SOPP", "s_waitcnt", {"simm16": 0}),
    ("SOPP", "s_barrier"),
    ("SOP2", "s_sub_u32", {"sdst": "s10", "ssrc0": "s10", "ssrc1": 1}),
    ("SOPC", "s_cmp_lg_u32", {"ssrc0": "s10", "ssrc1": 0}),
    ("SOPP", "s_cbranch_scc1", {"simm16": 0x10000 - 12}),
]


def counted(arch: str, lines: list[Line], **how: Any) -> Counts:
    counts = Counts()
    run_lines(arch, lines, simulator=Simulator(counts=counts, **how.pop("settings", {})), **how)
    return counts


def test_static_counts_of_a_loop_are_those_executed() -> None:
    text = assemble_text("gfx942", [*LOOP, ("SOPP", "s_endpgm")])
    (kernel,) = count_image(make_object("gfx942", {"k": Kernel(text, lds=4096)}))
    loop = kernel.loop
    assert loop is not None and (kernel.symbol, kernel.arch, kernel.lds_bytes) == ("k", "gfx942", 4096)
    assert (loop.instructions, loop.matrix, loop.matrix_cycles, loop.vector, loop.scalar) == (9, 1, 16, 1, 2)
    assert (loop.lds, loop.lds_cycles) == ({"read 16": 1, "write 16": 1}, 16)
    assert (loop.waits, loop.barriers, loop.branches, kernel.outside.instructions) == (1, 1, 1, 5)

    waves, groups = 4, 2
    counts = counted("gfx942", LOOP, block=64 * waves, groups=groups, lds=4096)
    inside = [pc for pc, times in counts.executed.items() if times == TURNS * waves * groups]
    assert len(inside) == loop.instructions and kernel.loop_pc == min(inside)
    assert set(counts.executed.values()) == {waves * groups, TURNS * waves * groups}
    assert counts.mix.instructions == waves * groups * (TURNS * loop.instructions + kernel.outside.instructions)
    assert counts.mix.matrix_cycles == waves * groups * TURNS * 16
    assert counts.mix.lds == {"read 16": waves * groups * TURNS, "write 16": waves * groups * TURNS}


@pytest.mark.parametrize(("shift", "write", "read"), [(4, 0, 0), (5, 8, 4), (7, 56, 28)])
def test_conflicts_of_lanes_at_a_stride(shift: int, write: int, read: int) -> None:
    """Lanes 16 bytes apart use all banks; 32 and 128 bytes apart, lanes of a phase meet in half or an eighth of them.

    Phases of writes are 8 neighbours; those of reads are four neighbours and four that lie 16 or 20 lanes further on,
    in the same banks at these strides.
    """
    lines: list[Line] = [
        ("VOP2", "v_lshlrev_b32", {"vdst": "v1", "src0": shift, "vsrc1": "v0"}),
        ("DS", "ds_write_b128", {"addr": "v1", "data0": "v8"}),
        ("DS", "ds_read_b128", {"addr": "v1", "vdst": "v12"}),
    ]
    counts = counted("gfx942", lines, block=64, lds=64 << shift)
    first, second = (counts.lds[pc] for pc in sorted(counts.lds))
    assert (first.clocks - 8, first.conflicts) == (write, write)
    assert second.conflicts == second.clocks - 8 >= read
    assert counts.conflicts == first.conflicts + second.conflicts
    assert not first.assumed and not second.assumed


def test_pairs_count_twice_and_unmeasured_phases_are_marked() -> None:
    lines: list[Line] = [
        ("VOP2", "v_lshlrev_b32", {"vdst": "v1", "src0": 2, "vsrc1": "v0"}),
        ("DS", "ds_read2st64_b32", {"addr": "v1", "vdst": "v12", "offset0": 0, "offset1": 1}),
        ("DS", "ds_bpermute_b32", {"addr": "v1", "vdst": "v12", "data0": "v1"}),
    ]
    counts = counted("gfx90a", lines, block=64, lds=512)
    ((pc, one),) = counts.lds.items()
    assert pc == 4 and (one.clocks, one.conflicts, one.assumed) == (4, 0, True)
    assert counts.mix.lds == {"bpermute": 1, "read 4": 2}


def test_lines_of_global_memory(tmp_path: Path) -> None:
    """64 lanes store 4 bytes each, side by side: 2 lines of 4 segments; 64 bytes apart: 32 lines of 64."""
    out = np.zeros(64 * 16 + 32, np.uint32)
    skip = -out.ctypes.data % 128 // 4
    place: list[Line] = [
        ("SMEM", "s_load_dwordx2", {"sdata": "s6", "sbase": "s0", "imm": 1}),
        ("VOP2", "v_lshlrev_b32", {"vdst": "v1", "src0": 2, "vsrc1": "v0"}),
        ("VOP2", "v_lshlrev_b32", {"vdst": "v2", "src0": 6, "vsrc1": "v0"}),
        ("GLOBAL", "global_store_dword", {"addr": "v1", "saddr": "s6", "data": "v0"}),
        ("GLOBAL", "global_store_dword", {"addr": "v2", "saddr": "s6", "data": "v0"}),
    ]
    counts = counted("gfx942", place, block=64, out=out[skip : skip + 64 * 16])
    assert [counts.lines[pc] for pc in sorted(counts.lines)] == [2, 32]
    assert [counts.segments[pc] for pc in sorted(counts.segments)] == [4, 64]
    assert counts.unique_lines == 32
    assert counts.mix.memory == {"store 4": 2}
    counts.write(tmp_path / "launch.json")
    document = json.loads((tmp_path / "launch.json").read_text())
    assert document == counts.as_json() and document["symbol"] == counts.symbol != ""
    assert (document["lines"], document["segments"], document["unique_lines"], document["conflicts"]) == (34, 68, 32, 0)
    moved = [(one["executed"], one["lines"]) for one in document["instructions"] if "lines" in one]
    assert moved == [(1, 2), (1, 32)] and document["mix"]["memory"] == {"store 4": 2}


def test_counts_are_those_of_the_last_launch_and_the_first_order_of_waves() -> None:
    counts = Counts()
    for settings in ({}, {"processes": 3}, {"seed": 3}, {"checks": Checks(waits=True, seeds=(1, 2))}):
        run_lines("gfx942", LOOP, simulator=Simulator(counts=counts, **settings), block=128, lds=2048)
        assert counts.mix.matrix == 2 * TURNS
        assert sum(one.clocks for one in counts.lds.values()) == 2 * TURNS * 16


def test_devices_take_counts() -> None:
    why = r"counts is 3; allowed: None, kernelwright.simulator.Counts\(\)"
    with pytest.raises(TypeError, match=why), configure(counts=3):  # type: ignore[arg-type]
        pass
