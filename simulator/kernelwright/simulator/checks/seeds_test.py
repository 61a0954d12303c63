"""Checks(seeds=…) repeats a launch in random orders of its waves, from the same memory."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.errors import Fault
from kernelwright.simulator.run.launch import Simulator
from kernelwright.simulator.testing.objects import Line, run_lines

# Every lane stores to LDS, and reads what wave 3 stored. The wait for the store stands behind the barrier: in the fixed
# order, wave 3 arrives there last, goes on at once, and has passed the wait when another wave reads.
LATE_WAIT: list[Line] = [
    ("VOP2", "v_lshlrev_b32", {"vdst": "v1", "src0": 2, "vsrc1": "v0"}),
    ("VOP2", "v_or_b32", {"vdst": "v2", "src0": 0x300, "vsrc1": "v1"}),
    ("DS", "ds_write_b32", {"addr": "v1", "data0": "v0"}),
    ("SOPP", "s_barrier"),
    *([("SOPP", "s_nop")] * 8),
    ("SOPP", "s_waitcnt", {"simm16": 0xC07F}),
    ("DS", "ds_read_b32", {"vdst": "v3", "addr": "v2"}),
    ("SOPP", "s_waitcnt", {"simm16": 0xC07F}),
]
# out[0] += 1
COUNT: list[Line] = [
    ("SMEM", "s_load_dwordx2", {"sdata": "s6", "sbase": "s0", "imm": 1}),
    ("SOPP", "s_waitcnt", {"simm16": 0xC07F}),
    ("VOP1", "v_mov_b32", {"vdst": "v1", "src0": 0}),
    ("GLOBAL", "global_load_dword", {"addr": "v1", "saddr": "s6", "vdst": "v2"}),
    ("SOPP", "s_waitcnt", {"simm16": 0x0F70}),
    ("VOP2", "v_add_u32", {"vdst": "v2", "src0": 1, "vsrc1": "v2"}),
    ("GLOBAL", "global_store_dword", {"addr": "v1", "saddr": "s6", "data": "v2"}),
]


def launch(**checks: Any) -> None:
    run_lines("gfx942", LATE_WAIT, simulator=Simulator(checks=Checks(waits=True, **checks)), block=256, lds=1024)


def fault_of(seed: int) -> Fault | None:
    try:
        launch(seeds=(seed,))
    except Fault as fault:
        return fault
    return None


def test_seeds_find_a_wait_that_the_order_of_waves_hides() -> None:
    launch()
    with pytest.raises(Fault, match=r"ds_write_b32 at pc 0xc.*nobody waited for it.*\(seed \d\)") as caught:
        launch(seeds=range(8))
    assert caught.value.seed is not None


def test_the_first_seed_that_faults_is_named_each_time() -> None:
    faults = [fault_of(seed) for seed in range(6)]
    first = next(seed for seed, fault in enumerate(faults) if fault is not None)
    for _ in range(2):
        with pytest.raises(Fault) as caught:
            launch(seeds=tuple(range(6)))
        assert caught.value.seed == first and str(caught.value) == str(faults[first])


@pytest.mark.parametrize("processes", [1, 2])
def test_each_run_starts_with_the_same_memory_and_the_first_one_counts(processes: int) -> None:
    out = np.array([41], np.uint32)
    simulator = Simulator(checks=Checks(waits=True, seeds=(0, 1, 2)), processes=processes)
    run_lines("gfx942", COUNT, simulator=simulator, out=out)
    assert out[0] == 42


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"seeds": (1,)}, "seeds repeat a launch for its checks; switch on uninitialised, races or waits"),
        ({"races": True, "seeds": (1, -1)}, r"seeds are \(1, -1\); allowed: integers from 0 on"),
        ({"races": True, "seeds": (True,)}, "allowed: integers from 0 on"),
    ],
)
def test_seeds_that_check_nothing_are_refused(options: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Checks(**options)
