"""Processes that fork while other threads plan: a child must neither hang nor lose its dispatcher."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelLibrary
from kernelwright.dispatch.testdata import mocks

CHILDREN = 200
SECONDS = 60


@pytest.fixture
def library(tmp_path: Path) -> KernelLibrary:
    mocks.native_library()
    return KernelLibrary.load(mocks.write_library(tmp_path / "x86_64_v3"))


@pytest.fixture
def dispatcher(library: KernelLibrary) -> Dispatcher:
    return Dispatcher([library])


def problem(size: int) -> GemmProblem:
    return GemmProblem(size, 32, 32, "fp32", layout="rcr")


def child(dispatcher: Dispatcher, number: int) -> int:
    """Fork a process that plans a problem nobody has planned, and ends with 7."""
    pid = os.fork()
    if pid == 0:
        try:
            plan = dispatcher.plan(problem(1_000_000 + number))
            os._exit(7 if plan.kernel.name else 1)
        except BaseException:
            os._exit(2)
    return pid


def ended(pid: int, until: float) -> int:
    """The exit code of a child; a child that hangs is killed, and -1."""
    while time.monotonic() < until:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_children_of_a_process_whose_threads_plan(dispatcher: Dispatcher) -> None:
    stop = threading.Event()

    def plan_on(first: int) -> None:
        size = first
        while not stop.is_set():
            dispatcher.plan(problem(size))
            size += 4

    threads = [threading.Thread(target=plan_on, args=(first,), daemon=True) for first in range(1, 5)]
    for thread in threads:
        thread.start()
    until = time.monotonic() + SECONDS
    try:
        codes = [ended(child(dispatcher, number), until) for number in range(CHILDREN)]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert codes == [7] * CHILDREN


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_child_of_a_thread_that_waits_for_a_selection_callback(library: KernelLibrary) -> None:
    """The callback needs the interpreter, which the forking thread holds: fork must not wait for it for ever."""
    inside, go_on = threading.Event(), threading.Event()

    def slow(problem: object, candidates: object) -> list[float]:
        inside.set()
        go_on.wait(SECONDS)
        return [float(index) for index, _ in enumerate(candidates)]  # type: ignore[arg-type]

    dispatcher = Dispatcher([library], selection=slow)
    other = Dispatcher([library])
    thread = threading.Thread(target=lambda: dispatcher.plan(problem(5)))
    thread.start()
    assert inside.wait(SECONDS)
    code = ended(child(other, 0), time.monotonic() + SECONDS)
    go_on.set()
    thread.join()
    assert code == 7
