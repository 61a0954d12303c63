from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.errors import Fault
from kernelwright.simulator.run.launch import Simulator
from kernelwright.simulator.testing.objects import Line, run_lines

UNSET = Simulator(checks=Checks(uninitialised=True))
WAITS, RACES = Simulator(checks=Checks(waits=True)), Simulator(checks=Checks(races=True))
BOTH = ["gfx942", "gfx1201"]


def move(register: str, value: Any) -> Line:
    return ("VOP1", "v_mov_b32", {"vdst": register, "src0": value})


def wait(arch: str, what: str) -> Line:
    if arch == "gfx1201":
        return (
            "SOPP",
            {"lds": "s_wait_dscnt", "scalar": "s_wait_kmcnt", "global": "s_wait_loadcnt"}[what],
            {"simm16": 0},
        )
    return ("SOPP", "s_waitcnt", {"simm16": 0x0F70 if what == "global" else 0xC07F})


def barrier(arch: str) -> list[Line]:
    if arch == "gfx1201":
        return [("SOP1", "s_barrier_signal", {"ssrc0": -1}), ("SOPP", "s_barrier_wait", {"simm16": 0xFFFF})]
    return [("SOPP", "s_barrier")]


def lds(arch: str, name: str, **fields: str) -> Line:
    old, new = {"store": ("ds_write_b32", "ds_store_b32"), "load": ("ds_read_b32", "ds_load_b32")}[name]
    return ("DS", new if arch == "gfx1201" else old, fields)


def pointer(arch: str) -> list[Line]:
    """s[2:3] = the address of the output."""
    if arch == "gfx1201":
        return [("SMEM", "s_load_b64", {"sdata": "s2", "sbase": "s0", "ioffset": 0, "soffset": "s124"})]
    return [("SMEM", "s_load_dwordx2", {"sdata": "s2", "sbase": "s0", "imm": 1})]


def store(arch: str, data: str) -> list[Line]:
    """out[lane] = data, through v30."""
    shift: Line = ("VOP2", "v_lshlrev_b32", {"vdst": "v30", "src0": 2, "vsrc1": "v0"})
    if arch == "gfx1201":
        return [shift, ("VGLOBAL", "global_store_b32", {"vaddr": "v30", "saddr": "s2", "vsrc": data})]
    return [shift, ("GLOBAL", "global_store_dword", {"addr": "v30", "saddr": "s2", "data": data})]


def fault(arch: str, lines: list[Line], simulator: Simulator, **how: Any) -> Fault:
    with pytest.raises(Fault) as caught:
        run_lines(arch, lines, simulator=simulator, **how)
    return caught.value


@pytest.mark.parametrize("arch", BOTH)
def test_storing_what_was_never_set_faults(arch: str) -> None:
    lines = [*pointer(arch), wait(arch, "scalar"), ("VOP2", "v_or_b32", {"vdst": "v5", "src0": 1, "vsrc1": "v4"})]
    lines += store(arch, "v5")
    raised = fault(arch, lines, UNSET, block=8)
    assert "uses v5, which depends on nothing that was ever set, in lane 0" in raised.reason
    assert "store" in raised.instruction and raised.pc == 0x14
    run_lines(arch, lines, block=8)  # without the check it is allowed
    run_lines(arch, [move("v4", 1), *lines], simulator=UNSET, block=8)


@pytest.mark.parametrize("arch", BOTH)
def test_lanes_that_were_inactive_when_it_was_set_hold_nothing(arch: str) -> None:
    narrow: Line = ("SOP1", "s_mov_b32", {"sdst": "exec", "ssrc0": 0x3F})
    wide: Line = ("SOP1", "s_mov_b32", {"sdst": "exec", "ssrc0": 0xFF})
    lines = [*pointer(arch), wait(arch, "scalar"), narrow, move("v4", 1), wide, *store(arch, "v4")]
    assert "in lane 6" in fault(arch, lines, UNSET, block=8).reason


def test_moves_pass_on_what_is_unknown_and_spills_do_too() -> None:
    spill: list[Line] = [
        ("SCRATCH", "scratch_store_dword", {"addr": "v0", "data": "v4", "saddr": "s20", "sve": 0}),
        ("SCRATCH", "scratch_load_dword", {"addr": "v0", "vdst": "v6", "saddr": "s20", "sve": 0}),
    ]
    zero: Line = ("SOP1", "s_mov_b32", {"sdst": "s20", "ssrc0": 0})
    lines = [*pointer("gfx942"), wait("gfx942", "scalar"), zero, *spill]
    run_lines("gfx942", lines, simulator=UNSET, block=8, scratch=64)
    assert "uses v6" in fault("gfx942", lines + store("gfx942", "v6"), UNSET, block=8, scratch=64).reason
    known = [move("v4", 9), *lines, wait("gfx942", "global"), *store("gfx942", "v6")]
    assert (run_lines("gfx942", known, simulator=UNSET, block=8, scratch=64) == 9).all()


def test_branches_on_and_scalars_from_what_is_unknown_fault() -> None:
    compare: Line = ("SOPC", "s_cmp_eq_u32", {"ssrc0": "s40", "ssrc1": 0})
    assert "uses s40" in fault("gfx942", [compare], UNSET).reason
    masks: list[Line] = [("VOPC", "v_cmp_eq_u32", {"src0": 0, "vsrc1": "v9"})]
    masks.append(("SOP1", "s_and_saveexec_b64", {"sdst": "s20", "ssrc0": "vcc"}))
    assert "uses s106" in fault("gfx942", masks, UNSET).reason
    first: list[Line] = [("VOP1", "v_readfirstlane_b32", {"vdst": "v9", "src0": "v9"})]
    first.append(("SOP2", "s_add_u32", {"sdst": "s9", "ssrc0": "s9", "ssrc1": 1}))
    assert "uses s9" in fault("gfx942", first, UNSET).reason


def test_the_low_half_of_a_wide_product_needs_no_high_half() -> None:
    product = {"vdst": "v2", "sdst": "s8", "src0": "v0", "src1": "v0", "src2": "v6"}
    lines = [*pointer("gfx942"), wait("gfx942", "scalar"), move("v6", 5), ("VOP3SD", "v_mad_u64_u32", product)]
    lanes = np.arange(8)
    assert (run_lines("gfx942", lines + store("gfx942", "v2"), simulator=UNSET, block=8) == lanes**2 + 5).all()
    assert "uses v3" in fault("gfx942", lines + store("gfx942", "v3"), UNSET, block=8).reason


def test_a_pair_of_results_needs_what_its_halves_read() -> None:
    start = [*pointer("gfx942"), wait("gfx942", "scalar"), move("v4", 0), move("v6", 0), move("v7", 0)]
    for upper, unset in ((0b10, ""), (0b11, "uses v9")):
        multiply: Line = ("VOP3P", "v_pk_mul_f32", {"vdst": "v8", "src0": "v4", "src1": "v6", "opsel_hi": upper})
        lines = [*start, multiply, *store("gfx942", "v9")]
        if unset:
            assert unset in fault("gfx942", lines, UNSET, block=8).reason
        else:
            run_lines("gfx942", lines, simulator=UNSET, block=8)


@pytest.mark.parametrize("arch", BOTH)
def test_reading_lds_that_nobody_wrote_faults(arch: str) -> None:
    lines = [move("v1", 16), move("v2", 32), lds(arch, "store", addr="v1", data0="v2")]
    run_lines(arch, [*lines, lds(arch, "load", addr="v1", vdst="v3")], simulator=UNSET, lds=64)
    raised = fault(arch, [*lines, lds(arch, "load", addr="v2", vdst="v3")], UNSET, lds=64)
    assert "reads LDS that nobody has written" in raised.reason and raised.address == 32


@pytest.mark.parametrize("arch", BOTH)
def test_a_register_may_not_be_used_before_the_wait_for_it(arch: str) -> None:
    head = [move("v1", 16), move("v2", 32), lds(arch, "store", addr="v1", data0="v2")]
    load, use = lds(arch, "load", addr="v1", vdst="v3"), ("VOP2", "v_or_b32", {"vdst": "v5", "src0": 1, "vsrc1": "v3"})
    run_lines(arch, [*head, load, wait(arch, "lds"), use], simulator=WAITS, lds=64)
    counter = "dscnt" if arch == "gfx1201" else "lgkmcnt"
    raised = fault(arch, [*head, load, use], WAITS, lds=64)
    assert f"reads v3 before a wait for {load[1]} at pc" in raised.reason and f"which {counter} counts" in raised.reason
    assert "overwrites v3" in fault(arch, [*head, load, move("v3", 0)], WAITS, lds=64).reason
    run_lines(arch, [*head, load, load, wait(arch, "lds"), use], simulator=WAITS, lds=64)  # they arrive in order


@pytest.mark.parametrize("arch", BOTH)
def test_scalar_and_global_loads_are_waited_for(arch: str) -> None:
    lines = [*pointer(arch), *store(arch, "v0")]
    assert "reads s2 before a wait for s_load" in fault(arch, lines, WAITS).reason
    right = [*pointer(arch), wait(arch, "scalar"), *store(arch, "v0")]
    assert (run_lines(arch, right, simulator=WAITS, block=8) == np.arange(8)).all()


def pair(arch: str, between: list[Line], first: str = "store", second: str = "load") -> list[Line]:
    """Each wave accesses its own dword, then, behind ``between``, that of its neighbour."""
    both = TARGET_LANES[arch] * 2
    own: list[Line] = [("VOP2", "v_lshlrev_b32", {"vdst": "v1", "src0": 2, "vsrc1": "v0"})]
    swap: list[Line] = [("VOP2", "v_xor_b32", {"vdst": "v2", "src0": 2 * both, "vsrc1": "v1"})]
    data = {"store": {"data0": "v0"}, "load": {"vdst": "v3"}}
    fill = [lds(arch, "store", addr="v1", data0="v0")] if first == "load" else []
    return [
        *own,
        *swap,
        *fill,
        lds(arch, first, addr="v1", **data[first]),
        *between,
        lds(arch, second, addr="v2", **data[second]),
    ]


TARGET_LANES = {"gfx942": 64, "gfx1201": 32}


@pytest.mark.parametrize("arch", BOTH)
@pytest.mark.parametrize("first", ["store", "load"])
@pytest.mark.parametrize("second", ["store", "load"])
def test_waves_that_touch_a_byte_without_a_barrier_race(arch: str, first: str, second: str) -> None:
    how: dict[str, Any] = {"block": 2 * TARGET_LANES[arch], "lds": 1024}
    run_lines(arch, pair(arch, barrier(arch), first, second), simulator=RACES, **how)
    lines = pair(arch, [], first, second)
    raised = fault(arch, lines, RACES, **how)
    assert "wave 0's" in raised.reason and "with no barrier between: a race" in raised.reason
    assert raised.wave == 1 and raised.address is not None and 0 <= raised.address < 512


def test_waves_may_write_the_same_if_a_launch_says_so() -> None:
    simulator = Simulator(checks=Checks(races=True, equal_writes=True))
    how: dict[str, Any] = {"block": 128, "lds": 1024}
    same = [move("v1", 16), move("v3", 7), lds("gfx942", "store", addr="v1", data0="v3")]
    run_lines("gfx942", same, simulator=simulator, **how)
    assert "a race" in fault("gfx942", same, RACES, **how).reason
    assert "a race" in fault("gfx942", pair("gfx942", [], "store", "store"), simulator, **how).reason


def test_between_arriving_and_waiting_a_wave_still_races() -> None:
    arrive, stay = barrier("gfx1201")
    early: Line = lds("gfx1201", "store", addr="v1", data0="v0")
    lines = pair("gfx1201", [arrive, early, stay])
    raised = fault("gfx1201", lines, RACES, block=64, lds=1024)
    assert "a race" in raised.reason
    run_lines("gfx1201", pair("gfx1201", [early, arrive, move("v7", 1), stay]), simulator=RACES, block=64, lds=1024)


@pytest.mark.parametrize("arch", BOTH)
def test_a_barrier_does_not_wait_for_stores(arch: str) -> None:
    how: dict[str, Any] = {"block": 2 * TARGET_LANES[arch], "lds": 1024}
    run_lines(arch, pair(arch, [wait(arch, "lds"), *barrier(arch)]), simulator=WAITS, **how)
    raised = fault(arch, pair(arch, barrier(arch)), WAITS, **how)
    assert "may not have finished: nobody waited for it" in raised.reason


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_races_are_found_in_every_order(seed: int | None) -> None:
    simulator = Simulator(checks=Checks(races=True), seed=seed)
    assert "a race" in fault("gfx942", pair("gfx942", []), simulator, block=128, lds=1024).reason
    run_lines("gfx942", pair("gfx942", barrier("gfx942")), simulator=simulator, block=128, lds=1024)
