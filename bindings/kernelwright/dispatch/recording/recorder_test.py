"""Recording on a mock library, whose kernels compute nothing."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelwrightError, NoKernelError, record
from kernelwright.dispatch.recording import counting
from kernelwright.dispatch.recording.trace import read_trace
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    mocks.native_library()
    return mocks.write_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def dispatcher(library: Path) -> Dispatcher:
    return Dispatcher(library)


def matrices(m: int, n: int = 32, k: int = 64) -> tuple[Any, Any, Any]:
    return np.zeros((m, k), np.float32), np.zeros((n, k), np.float32).T, np.zeros((m, n), np.float32)


def counts(path: Path) -> dict[int, tuple[int, int]]:
    """Launches, and refusals, by m."""
    return {one.problem["m"]: (one.count, one.unserved) for one in read_trace(path)}


def test_every_way_to_launch_counts(dispatcher: Dispatcher, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    a, b, out = matrices(32)
    plan = dispatcher.plan_gemm(a, b, out=out)
    plan(a, b, out=out)
    dispatcher.gemm(a, b, out=out)
    with record(path) as recording:
        for _ in range(3):
            dispatcher.gemm(a, b, out=out)  # its plan is older than the recording
        plan(a, b, out=out)
        bound = plan.bind(a, b, out=out)
        bound()
        bound()
        assert recording.path == path
    dispatcher.gemm(a, b, out=out)
    bound()
    assert counts(path) == {32: (6, 0)}
    (one,) = read_trace(path)
    assert (one.op, one.arch, one.problem) == ("gemm", "x86_64_v3", {"m": 32, "n": 32, "k": 64, "split_k": 0})


def test_a_problem_that_nothing_serves_counts_too(dispatcher: Dispatcher, tmp_path: Path) -> None:
    with record(tmp_path / "t"), pytest.raises(NoKernelError):
        dispatcher.plan(GemmProblem(7, 8, 9, "bf16"))
    assert counts(tmp_path / "t") == {7: (0, 1)}


def test_arrays_that_can_be_read_in_two_ways_count_once(dispatcher: Dispatcher, tmp_path: Path) -> None:
    a, b, out = matrices(1)
    with record(tmp_path / "t"), pytest.raises(NoKernelError):
        dispatcher.gemm(a, b, out=out, activation="relu")
    assert counts(tmp_path / "t") == {1: (0, 1)} and len(read_trace(tmp_path / "t")) == 1


def test_threads_lose_no_launch(dispatcher: Dispatcher, tmp_path: Path) -> None:
    path = tmp_path / "t"

    def work(number: int) -> None:
        a, b, out = matrices(1 + number % 2)
        for _ in range(500):
            dispatcher.gemm(a, b, out=out)

    with record(path) as recording:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(20):
            recording.flush()
        for thread in threads:
            thread.join()
    assert counts(path) == {1: (1000, 0), 2: (1000, 0)}


def test_a_second_run_adds_to_the_first(dispatcher: Dispatcher, tmp_path: Path) -> None:
    a, b, out = matrices(4)
    for _ in range(2):
        with record(tmp_path / "t"):
            dispatcher.gemm(a, b, out=out)
    assert counts(tmp_path / "t") == {4: (2, 0)}


def test_nobody_records_twice_and_a_foreign_file_stays(tmp_path: Path) -> None:
    with record(tmp_path / "t"), pytest.raises(KernelwrightError, match=r"problems are recorded in .*/t; close"):
        record(tmp_path / "u")
    (tmp_path / "text").write_text("my notes")
    with pytest.raises(ValueError, match="no trace"):
        record(tmp_path / "text")
    assert (tmp_path / "text").read_text() == "my notes" and counting.active() is None


def test_plans_have_the_bare_call_while_nobody_records(dispatcher: Dispatcher, tmp_path: Path) -> None:
    a, b, out = matrices(3)
    plan = dispatcher.plan_gemm(a, b, out=out)
    kind = type(plan.bind(a, b, out=out).__call__)
    with record(tmp_path / "t"):
        assert type(plan.bind(a, b, out=out).__call__) is not kind
    assert type(plan.bind(a, b, out=out).__call__) is kind


def _child(dispatcher: Dispatcher, m: int) -> None:
    a, b, out = matrices(m)
    dispatcher.gemm(a, b, out=out)


def test_children_add_what_they_launched_and_nothing_else(dispatcher: Dispatcher, tmp_path: Path) -> None:
    a, b, out = matrices(5)
    fork = multiprocessing.get_context("fork")
    with record(tmp_path / "t"):
        dispatcher.gemm(a, b, out=out)
        children = [fork.Process(target=_child, args=(dispatcher, 5 + number)) for number in range(3)]
        for child in children:
            child.start()
        for child in children:
            child.join()
        assert [child.exitcode for child in children] == [0, 0, 0]
    assert counts(tmp_path / "t") == {5: (2, 0), 6: (1, 0), 7: (1, 0)}


PROGRAM = """
import sys
import numpy as np
from kernelwright.dispatch import Dispatcher
a, b = np.zeros((9, 64), np.float32), np.zeros((32, 64), np.float32).T
Dispatcher(sys.argv[1]).gemm(a, b, out=np.zeros((9, 32), np.float32))
"""


def test_the_environment_records_a_whole_program(library: Path, tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "KERNELWRIGHT_RECORD": str(tmp_path / "t")}
    subprocess.run([sys.executable, "-c", PROGRAM, str(library)], env=env, check=True, timeout=120)
    assert counts(tmp_path / "t") == {9: (1, 0)}
