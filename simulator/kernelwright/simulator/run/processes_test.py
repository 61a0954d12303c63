from __future__ import annotations

import os
import signal
from functools import partial

import pytest

from kernelwright.simulator.errors import Fault, SimulatorError
from kernelwright.simulator.run.processes import run_forked


def fault(workgroup: tuple[int, int, int]) -> Fault:
    return Fault("wrong", kernel="k", workgroup=workgroup, wave=1, pc=8, instruction="s_nop", address=5, seed=3)


def fail(error: BaseException) -> None:
    raise error


def test_results_come_back_in_order_from_processes_of_their_own() -> None:
    found = run_forked([lambda n=n: (n * n, os.getpid()) for n in range(5)])  # type: ignore[misc]
    assert [square for square, _ in found] == [0, 1, 4, 9, 16]
    assert len({pid for _, pid in found} | {os.getpid()}) == 6


def test_the_fault_of_the_lowest_workgroup_is_raised() -> None:
    jobs = [partial(fail, fault(where)) for where in ((3, 0, 0), (0, 1, 0), (2, 0, 0))]
    with pytest.raises(Fault) as caught:
        run_forked([lambda: None, partial(fail, ValueError("later")), *jobs])
    assert caught.value.workgroup == (2, 0, 0)
    assert (caught.value.reason, caught.value.address, caught.value.wave) == ("wrong", 5, 1)
    assert caught.value.seed == 3 and str(caught.value).endswith("wrong (address 0x5) (seed 3)")


def test_a_killed_process_is_an_error() -> None:
    with pytest.raises(SimulatorError, match="died without a word"):
        run_forked([lambda: 1, lambda: os.kill(os.getpid(), signal.SIGKILL)])


def test_nothing_is_left_behind() -> None:
    with pytest.raises(ValueError, match="no"):
        run_forked([partial(fail, ValueError("no"))] * 3)
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
