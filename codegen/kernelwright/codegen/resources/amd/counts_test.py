"""Counts of kernels that are written down line by line."""

from __future__ import annotations

import pytest

from kernelwright.codegen.resources.amd.counts import read_counts
from kernelwright.codegen.resources.testing.loop import LOOP
from kernelwright.files.counts.instruction_set import instruction_set


def counts(shift: int = 4, rest: str = "s_nop 0", instructions: str = "gfx942") -> dict:  # type: ignore[type-arg]
    text = LOOP.format(shift=shift, rest=rest)
    return read_counts(text, ["k_one", "k_gemm"], instruction_set(instructions), 256, 4)


def test_the_function_with_the_main_loop_is_counted() -> None:
    counted = counts()
    loop = counted["loop"]
    assert (loop["instructions"], loop["matrix"], loop["matrix_cycles"], loop["vector_cycles"]) == (8, 1, 32, 16)
    assert loop["lds"] == {"read 4": 2, "write 16": 1} and loop["memory"] == {"load 16": 1}
    assert counted["outside"]["instructions"] == 4
    # 8 phases of writes and 2 x 2 of reads; reads of 4 bytes at a stride of 16 meet in fours: 3 more each.
    assert (loop["lds_cycles"], loop["conflict_cycles"], loop["conflicts_assumed"]) == (12, 12, False)
    assert counted["clocks"] == {"matrix": 32, "vector": 16, "lds": 96, "memory": round(4 * 1024 / 53)}
    assert (counted["bound"], counted["valu_per_matrix_cycle"], counted["lds_per_matrix_cycle"]) == ("lds", 0.5, 3.0)


@pytest.mark.parametrize(("shift", "added"), [(4, 0), (5, 8), (6, 24), (7, 56)])
def test_conflicts_of_writes_at_a_stride(shift: int, added: int) -> None:
    """8 lanes of 16 bytes fill the banks side by side; twice, four and eight times as far apart, they meet."""
    reads = 2 * 2 * ((1 << shift) // 4 - 1)
    assert counts(shift)["loop"]["conflict_cycles"] == added + min(reads, 2 * 2 * 31)


def test_conflicts_of_addresses_that_a_launch_decides_are_not_known() -> None:
    text = LOOP.format(shift=4, rest="s_nop 0").replace("ds_write_b128 v1", "ds_write_b128 v2")
    counted = read_counts(text, ["k_gemm"], instruction_set("gfx942"), 64, 4)
    assert counted["loop"]["conflict_cycles"] is None and counted["lds_per_matrix_cycle"] is None
    assert counted["valu_per_matrix_cycle"] == 0.5


def test_assumed_phases_are_marked() -> None:
    assert counts(instructions="gfx90a")["loop"]["conflicts_assumed"]


def test_a_kernel_without_a_main_loop_has_only_what_it_holds() -> None:
    counted = read_counts(LOOP, ["k_one"], instruction_set("gfx942"), 64, 4)
    assert counted["loop"] is None and counted["bound"] is None and counted["outside"]["instructions"] == 1
