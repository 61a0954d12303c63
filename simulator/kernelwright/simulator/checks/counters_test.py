from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.checks.counters import Access, Traffic, counters_of, flat_counters, waits_of
from kernelwright.simulator.code.instruction import Instruction
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.machine.memory import SHARED_APERTURE


def named(name: str, encoding: str = "SOPP", **fields: int) -> Instruction:
    return Instruction(0, 4, encoding, name, {}, fields)


@pytest.mark.parametrize(
    ("arch", "name", "simm16", "expected"),
    [
        # Encoded by LLVM's assembler.
        ("gfx942", "s_waitcnt", 0x0F70, {"vmcnt": 0}),
        ("gfx942", "s_waitcnt", 0xC07F, {"lgkmcnt": 0}),
        ("gfx942", "s_waitcnt", 0x4F7A, {"vmcnt": 26}),
        ("gfx942", "s_waitcnt", 0x0000, {"vmcnt": 0, "lgkmcnt": 0}),
        ("gfx942", "s_waitcnt", 0xCF7F, {}),
        ("gfx1100", "s_waitcnt", 0xFC07, {"lgkmcnt": 0}),
        ("gfx1100", "s_waitcnt", 0x07F7, {"vmcnt": 1}),
        ("gfx1100", "s_waitcnt_vscnt", 3, {"vscnt": 3}),
        ("gfx1201", "s_wait_kmcnt", 0, {"kmcnt": 0}),
        ("gfx1201", "s_wait_loadcnt", 5, {"loadcnt": 5}),
        ("gfx1201", "s_wait_loadcnt_dscnt", 0x0402, {"loadcnt": 4, "dscnt": 2}),
        ("gfx1201", "s_wait_storecnt_dscnt", 0x0100, {"storecnt": 1, "dscnt": 0}),
        ("gfx1201", "s_wait_alu", 0xFFFD, {}),
    ],
)
def test_wait_fields(arch: str, name: str, simm16: int, expected: dict[str, int]) -> None:
    assert waits_of(named(name, simm16=simm16), TARGETS[arch]) == expected


@pytest.mark.parametrize(
    ("arch", "encoding", "name", "fields", "expected"),
    [
        ("gfx942", "MUBUF", "buffer_store_dword", {}, (("vmcnt",), True)),
        ("gfx942", "DS", "ds_read_b32", {}, (("lgkmcnt",), True)),
        ("gfx942", "SMEM", "s_load_dword", {}, (("lgkmcnt",), False)),
        ("gfx942", "FLAT", "flat_load_dword", {}, (("vmcnt", "lgkmcnt"), False)),
        ("gfx942", "VOP2", "v_add_u32", {}, ((), True)),
        ("gfx1100", "GLOBAL", "global_store_b32", {}, (("vscnt",), True)),
        ("gfx1100", "GLOBAL", "global_atomic_add_u32", {"glc": 1}, (("vmcnt",), True)),
        ("gfx1100", "GLOBAL", "global_atomic_add_u32", {"glc": 0}, (("vscnt",), True)),
        ("gfx1201", "VBUFFER", "buffer_load_b32", {}, (("loadcnt",), True)),
        ("gfx1201", "VSCRATCH", "scratch_store_b32", {}, (("storecnt",), True)),
        ("gfx1201", "DS", "ds_load_b32", {}, (("dscnt",), True)),
        ("gfx1201", "SMEM", "s_load_b32", {}, (("kmcnt",), False)),
    ],
)
def test_counters(arch: str, encoding: str, name: str, fields: dict[str, int], expected: Any) -> None:
    assert counters_of(named(name, encoding, **fields), TARGETS[arch]) == expected


def issue(traffic: Traffic, counters: tuple[str, ...], ordered: bool) -> Access:
    access = Access(named("x_load"), 0, 0, counters, ordered)
    traffic.issue(access)
    return access


def test_ordered_accesses_arrive_one_after_the_other() -> None:
    traffic = Traffic()
    accesses = [issue(traffic, ("vmcnt",), True) for _ in range(4)]
    traffic.wait("vmcnt", 3)
    assert [bool(access.due) for access in accesses] == [False, True, True, True]
    traffic.wait("lgkmcnt", 0)
    traffic.wait("vmcnt", 1)
    assert [bool(access.due) for access in accesses] == [False, False, False, True]
    traffic.wait("vmcnt", 0)
    assert not accesses[3].due


def test_a_full_counter_holds_back_the_next_access() -> None:
    traffic = Traffic()
    accesses = [issue(traffic, ("vmcnt",), True) for _ in range(63)]
    assert all(access.due for access in accesses)
    issue(traffic, ("vmcnt",), True)
    assert [bool(access.due) for access in accesses[:2]] == [False, True]


def test_scalar_loads_have_arrived_only_when_nothing_is_under_way() -> None:
    traffic = Traffic()
    scalar = issue(traffic, ("lgkmcnt",), False)
    first, second = issue(traffic, ("lgkmcnt",), True), issue(traffic, ("lgkmcnt",), True)
    traffic.wait("lgkmcnt", 1)  # the scalar load may be the one that is left, or the second
    assert scalar.due and not first.due and second.due
    traffic.wait("lgkmcnt", 0)
    assert not scalar.due and not second.due


@pytest.mark.parametrize(
    ("high", "due", "ordered"),
    [
        ([7, 8], ("vmcnt",), True),
        ([SHARED_APERTURE, 8], ("vmcnt", "lgkmcnt"), False),
        ([SHARED_APERTURE, SHARED_APERTURE], ("lgkmcnt",), True),
    ],
)
def test_flat_accesses_are_counted_where_they_go(high: list[int], due: tuple[str, ...], ordered: bool) -> None:
    assert flat_counters(("vmcnt", "lgkmcnt"), np.array(high, np.uint32)) == (due, ordered)


@pytest.mark.parametrize(
    ("name", "atomic"),
    [("ds_cmpstore_b32", True), ("ds_storexchg_rtn_b32", True), ("ds_read2st64_b32", False), ("ds_store_b8", False)],
)
def test_atomics_are_told_from_stores(name: str, atomic: bool) -> None:
    assert Access(Instruction(0, 8, "DS", name), 0, 0, (), True).atomic == atomic


def test_flat_accesses_need_both_counters() -> None:
    traffic = Traffic()
    flat = issue(traffic, ("vmcnt", "lgkmcnt"), False)
    traffic.vectors[3] = flat
    traffic.wait("vmcnt", 0)
    assert flat.due == {"lgkmcnt"} and traffic.vectors == {3: flat}
    traffic.wait("lgkmcnt", 0)
    assert not flat.due and not traffic.vectors
