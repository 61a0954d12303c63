from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from functools import partial

import pytest

from kernelwright.simulator.errors import Fault, SimulatorError
from kernelwright.simulator.run.processes import end_with, run_forked


def fault(workgroup: tuple[int, int, int]) -> Fault:
    return Fault("wrong", kernel="k", workgroup=workgroup, wave=1, pc=8, instruction="s_nop", address=5, seed=3)


def fail(error: BaseException) -> None:
    raise error


def test_results_come_back_in_order_from_processes_of_their_own() -> None:
    pairs = run_forked([lambda n=n: (n * n, os.getpid()) for n in range(5)])  # type: ignore[misc]
    assert [square for square, _ in pairs] == [0, 1, 4, 9, 16]
    assert len({pid for _, pid in pairs} | {os.getpid()}) == 6


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


ENDLESS = """
import os, sys, time
from kernelwright.simulator.run.processes import end_with, run_forked

def job():
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)

run_forked([job] * 3)
"""


def test_processes_end_with_a_parent_that_is_killed() -> None:
    """Its output ends when the last process that holds it has ended."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, env=environment)
    assert parent.stdout is not None
    children = []
    try:
        children = [int(parent.stdout.readline()) for _ in range(3)]
        parent.kill()
        ready, _, _ = select.select([parent.stdout], [], [], 30)
        assert ready and parent.stdout.read() == b"", "processes live on without their parent"
    finally:
        parent.kill()
        parent.wait()
        parent.stdout.close()
        for child in children:
            if b"run.processes" in command_line(child):
                os.kill(child, signal.SIGKILL)


def command_line(pid: int) -> bytes:
    """Empty for a process that has ended."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read()
    except FileNotFoundError:
        return b""


def test_a_process_whose_parent_ended_during_the_fork_ends_at_once() -> None:
    def orphan() -> None:
        end_with(os.getpid())  # not its parent

    with pytest.raises(SimulatorError, match="died without a word"):
        run_forked([orphan])
