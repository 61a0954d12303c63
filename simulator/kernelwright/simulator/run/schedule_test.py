from __future__ import annotations

import numpy as np
import pytest

from kernelwright.simulator.errors import Fault, SimulatorError
from kernelwright.simulator.run.launch import Simulator
from kernelwright.simulator.testing.objects import Line, run_lines

POINTER: Line = ("SMEM", "s_load_dwordx2", {"sdata": "s6", "sbase": "s0", "imm": 1})
ZERO: Line = ("VOP1", "v_mov_b32", {"vdst": "v9", "src0": 0})


def increments(times: int) -> list[Line]:
    """LDS[0] += 1, without atomics or barriers, in lane 0 of each wave; then out[0] = LDS[0]."""
    once: list[Line] = [
        ("DS", "ds_read_b32", {"vdst": "v3", "addr": "v9"}),
        ("VOP2", "v_add_u32", {"vdst": "v3", "src0": 1, "vsrc1": "v3"}),
        ("DS", "ds_write_b32", {"addr": "v9", "data0": "v3"}),
    ]
    head: list[Line] = [POINTER, ZERO, ("DS", "ds_write_b32", {"addr": "v9", "data0": "v9"}), ("SOPP", "s_barrier")]
    tail: list[Line] = [("SOPP", "s_barrier"), ("DS", "ds_read_b32", {"vdst": "v3", "addr": "v9"})]
    tail.append(("GLOBAL", "global_store_dword", {"addr": "v9", "saddr": "s6", "data": "v3"}))
    return [*head, *(once * times), *tail]


def total(seed: int | None) -> int:
    out = np.zeros(1, np.uint32)
    run_lines("gfx942", increments(20), simulator=Simulator(seed=seed), block=256, lds=64, out=out)
    return int(out[0])


def test_in_order_each_wave_runs_to_its_barrier() -> None:
    assert total(None) == 4 * 20


def test_random_slices_interleave_waves_and_a_seed_repeats_them() -> None:
    totals = [total(seed) for seed in range(6)]
    assert all(20 <= count < 80 for count in totals), "no update was lost: waves did not overtake each other"
    assert len(set(totals)) > 1
    assert totals == [total(seed) for seed in range(6)]


def test_the_step_limit_is_one_of_each_workgroup() -> None:
    lines: list[Line] = [("SOPP", "s_nop")] * 9  # and s_endpgm, in 2 waves
    run_lines("gfx942", lines, simulator=Simulator(steps=20), block=128, groups=3)
    for seed in (None, 1):
        with pytest.raises(Fault, match="has executed 19 instructions") as caught:
            run_lines("gfx942", lines, simulator=Simulator(steps=19, seed=seed), block=128, groups=3)
        assert caught.value.instruction == "s_endpgm" and caught.value.workgroup == (0, 0, 0)
    with pytest.raises(Fault, match=r"wave 0: ended; wave 1: stands at pc 0x24 \(s_endpgm\)"):
        run_lines("gfx942", lines, simulator=Simulator(steps=19), block=128)


def test_the_instruction_limit_is_one_of_the_launch() -> None:
    lines: list[Line] = [("SOPP", "s_nop")] * 9
    run_lines("gfx942", lines, simulator=Simulator(instruction_limit=60), block=128, groups=3)
    for limit, where in ((59, (2, 0, 0)), (40, (2, 0, 0)), (39, (1, 0, 0)), (1, (0, 0, 0))):
        reason = (
            rf"the instruction limit of the launch is reached: {limit} instructions ran, {where[0]} workgroups ended"
        )
        for seed in (None, 5):
            with pytest.raises(Fault, match=reason) as caught:
                run_lines("gfx942", lines, simulator=Simulator(instruction_limit=limit, seed=seed), block=128, groups=3)
            assert caught.value.workgroup == where and caught.value.seed == seed


def test_the_limit_counts_the_instructions_of_all_processes() -> None:
    lines: list[Line] = [("SOPP", "s_nop")] * 9
    run_lines("gfx942", lines, simulator=Simulator(instruction_limit=60, processes=3), block=128, groups=3)
    with pytest.raises(SimulatorError, match=r"executed 60 instructions in 3 processes, .* limit of the launch is 59"):
        run_lines("gfx942", lines, simulator=Simulator(instruction_limit=59, processes=3), block=128, groups=3)
    with pytest.raises(Fault, match="19 instructions ran, 0 workgroups ended"):
        run_lines("gfx942", lines, simulator=Simulator(instruction_limit=19, processes=3), block=128, groups=3)


def test_a_limit_says_where_each_wave_stands() -> None:
    """Wave 0 ends, wave 1 waits at a barrier, wave 2 spins."""
    lines: list[Line] = [
        ("VOP1", "v_readfirstlane_b32", {"vdst": "v9", "src0": "v0"}),
        ("SOPC", "s_cmp_eq_u32", {"ssrc0": "s9", "ssrc1": 0}),
        ("SOPP", "s_cbranch_scc1", {"simm16": 4}),
        ("SOPC", "s_cmp_eq_u32", {"ssrc0": "s9", "ssrc1": 64}),
        ("SOPP", "s_cbranch_scc1", {"simm16": 1}),
        ("SOPP", "s_branch", {"simm16": 0xFFFF}),
        ("SOPP", "s_barrier"),
    ]
    with pytest.raises(Fault) as caught:
        run_lines("gfx942", lines, simulator=Simulator(instruction_limit=500), block=192)
    assert caught.value.reason == (
        "the instruction limit of the launch is reached: 500 instructions ran, 0 workgroups ended; wave 0: ended; "
        "wave 1: waits at pc 0x18 (s_barrier); wave 2: stands at pc 0x14 (s_branch simm16:65535)"
    )
    assert (caught.value.wave, caught.value.pc) == (2, 0x14)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_1_is_refused(limit: int) -> None:
    with pytest.raises(SimulatorError, match=f"instruction_limit is {limit}; allowed: None, or an integer from 1 on"):
        Simulator(instruction_limit=limit)


def test_a_failure_of_the_simulator_itself_names_the_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernelwright.simulator.machine import lds

    def broken(*_: object) -> None:
        raise IndexError("out of something")

    monkeypatch.setattr(lds.Lds, "store", broken)
    with pytest.raises(Fault, match="the simulator itself failed: IndexError: out of something") as caught:
        run_lines("gfx942", [ZERO, ("DS", "ds_write_b32", {"addr": "v9", "data0": "v9"})], lds=64)
    assert caught.value.pc == 4 and caught.value.instruction.startswith("ds_write_b32")
