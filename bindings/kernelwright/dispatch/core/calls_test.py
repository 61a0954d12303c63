from __future__ import annotations

import gc
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import BoundPlan, Dispatcher, GemmProblem, KernelLibrary, LaunchError
from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.errors import NativeLibraryError
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory: pytest.TempPathFactory) -> Dispatcher:
    mocks.native_library()
    return Dispatcher(KernelLibrary.load(mocks.write_library(tmp_path_factory.mktemp("library"))))


def bound_of(dispatcher: Dispatcher, size: int, out: Any = None) -> BoundPlan:
    a, b = (np.full((size, size), value, np.float32) for value in (2, 3))
    out = np.zeros((size, size), np.float32) if out is None else out
    return dispatcher.plan(GemmProblem(size, size, size, layout="rrr")).bind(a, b, out=out)


def test_calls_return_out_and_count_its_references(dispatcher: Dispatcher) -> None:
    out = np.zeros((3, 3), np.float32)
    bound = bound_of(dispatcher, 3, out)
    before = sys.getrefcount(out)
    assert all(bound() is out for _ in range(50))
    assert sys.getrefcount(out) == before
    np.testing.assert_array_equal(out, 18)


def test_the_function_owns_what_it_needs(dispatcher: Dispatcher) -> None:
    class Array(np.ndarray[Any, Any]):
        pass

    out = np.zeros((4, 4), np.float32).view(Array)
    gone = weakref.ref(out)
    bound = bound_of(dispatcher, 4, out)
    launch = bound.__call__
    del bound, out
    gc.collect()
    np.testing.assert_array_equal(np.asarray(launch()), 24)
    assert gone() is not None
    del launch
    gc.collect()
    assert gone() is None


def test_failures_raise_every_time_and_leak_nothing(dispatcher: Dispatcher) -> None:
    a, out = np.zeros((2, 2), np.int8), np.zeros((2, 2), np.int32)
    bound = dispatcher.plan(GemmProblem(2, 2, 2, dtype="int8")).bind(a, a.T.copy().T, out=out)
    before = sys.getrefcount(out)
    for _ in range(3):
        with pytest.raises(LaunchError, match="the mock runtime said no"):
            bound()
    assert sys.getrefcount(out) == before
    with pytest.raises(TypeError, match="no arguments"):
        bound.__call__(1)  # type: ignore[call-arg]


@pytest.fixture
def count() -> Iterator[list[int]]:
    """Goes up whenever another thread gets the interpreter, which nobody is made to give away."""
    interval = sys.getswitchinterval()
    counted, ended = [0], threading.Event()

    def work() -> None:
        while not ended.is_set():
            counted[0] += 1
            time.sleep(1e-4)

    thread = threading.Thread(target=work)
    thread.start()
    sys.setswitchinterval(1000)
    yield counted
    sys.setswitchinterval(interval)
    ended.set()
    thread.join()


def test_other_threads_run_during_long_launches(dispatcher: Dispatcher, count: list[int]) -> None:
    brief, long = bound_of(dispatcher, 64), bound_of(dispatcher, 160)
    seen = count[0]
    for _ in range(20):
        brief()
        assert count[0] == seen
    for _ in range(1000):
        long()
        if count[0] != seen:
            return
    pytest.fail("no other thread ran during 1000 launches")


def test_the_extension_checks_what_it_is_given() -> None:
    mocks.native_library()
    extension = native.extension()
    for wrong in ((), (1, 2, 3), (1, 2, 3, True, None, print, None, None)):
        with pytest.raises(TypeError, match="bound_call takes plan"):
            extension.bound_call(*wrong)
    with pytest.raises(TypeError):
        extension.bound_call("plan", 2, 3, True, None, print, None)  # type: ignore[arg-type]
    with pytest.raises((OverflowError, TypeError)):
        extension.bound_call(1 << 80, 2, 3, True, None, print, None)


def test_a_python_without_a_global_lock_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lays out its objects differently."""
    mocks.native_library()
    path = native.library()._name
    monkeypatch.setattr(sys, "abiflags", "t")
    with pytest.raises(NativeLibraryError, match="no global interpreter lock; allowed"):
        native._open(path)
