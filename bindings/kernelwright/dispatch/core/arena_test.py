from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, Dispatcher, GemmProblem, KernelLibrary, Plan, trim
from kernelwright.dispatch.core import workspace
from kernelwright.dispatch.core.arena import Arenas
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory: pytest.TempPathFactory) -> Dispatcher:
    mocks.native_library()
    return Dispatcher(KernelLibrary.load(mocks.write_library(tmp_path_factory.mktemp("library"))))


class Memory:
    """Counts workspaces: how many were allocated, and which are in use."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.allocated = 0
        self.most = 0  # in use at a time
        self._made: list[weakref.ref[Any]] = []
        self._allocate = workspace.allocate
        monkeypatch.setattr(workspace, "allocate", self.allocate)

    def allocate(self, size: int, family: str, device: str, stream: int) -> tuple[int, Any]:
        address, owner = self._allocate(size, family, device, stream)
        self.allocated += 1
        self._made.append(weakref.ref(owner))
        self.most = max(self.most, len(self.owners))
        return address, owner

    @property
    def owners(self) -> list[Any]:
        return [owner for made in self._made if (owner := made()) is not None]

    @property
    def sizes(self) -> list[int]:
        return sorted(owner.nbytes - workspace.ALIGNMENT for owner in self.owners)


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch) -> Memory:
    trim()
    return Memory(monkeypatch)


def arrays(m: int) -> tuple[Any, Any, Any]:
    return np.full((m, 2), 2, np.float32), np.full((2, 3), 3, np.float32), np.zeros((m, 3), np.float32)


def plan_of(dispatcher: Dispatcher, m: int) -> Plan:
    return dispatcher.plan(GemmProblem(m, 3, 2, layout="rrr"))


def test_all_plans_of_a_thread_share_one_allocation(dispatcher: Dispatcher, memory: Memory) -> None:
    sizes = [64 * (turn % 50 if turn % 2 else 100 - turn) for turn in range(1, 101)]
    plans = [plan_of(dispatcher, m) for m in sizes]
    needed = [plan.workspace_bytes for plan in plans]
    assert needed[0] < needed[1] > needed[2] < needed[3] and len({*needed}) > 50
    for _ in range(2):
        for plan, m in zip(plans, sizes, strict=True):
            a, b, out = arrays(m)
            for _ in range(2):
                plan(a, b, out=out)
                np.testing.assert_array_equal(out, 12)
            np.testing.assert_array_equal(dispatcher.gemm(a, b), 12)
    assert memory.sizes == [max(needed)] and memory.most == 1 and memory.allocated < 5


def test_launches_use_the_memory_that_grew(dispatcher: Dispatcher, memory: Memory) -> None:
    small, large = plan_of(dispatcher, 1), plan_of(dispatcher, 640)
    a, b, out = arrays(1)
    for _ in range(2):
        small(a, b, out=out)
    a_large, b_large, out_large = arrays(640)
    large(a_large, b_large, out=out_large)
    (owner,) = memory.owners
    assert owner.nbytes - workspace.ALIGNMENT == large.workspace_bytes
    for _ in range(2):
        owner[:] = 0
        small(a, b, out=out)  # its arrays are known: the shortest path
        assert (owner == 0x5A).sum() == small.workspace_bytes


def test_bound_plans_have_memory_of_their_own(dispatcher: Dispatcher, memory: Memory) -> None:
    a, b, out = arrays(1)
    bound = plan_of(dispatcher, 1).bind(a, b, out=out)
    a_large, b_large, out_large = arrays(640)
    plan_of(dispatcher, 640)(a_large, b_large, out=out_large)
    trim()
    (owner,) = memory.owners  # the bound plan alone keeps it
    for run in (lambda launch: launch(), run_in_thread):
        owner[:], out[:] = 0, 0
        run(bound)
        np.testing.assert_array_equal(out, 12)
        assert (owner == 0x5A).sum() == 4096
    del bound, owner
    gc.collect()
    assert memory.sizes == []


def run_in_thread(run: Any) -> None:
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()


def test_threads_have_arenas_of_their_own_until_they_end(dispatcher: Dispatcher, memory: Memory) -> None:
    plan = plan_of(dispatcher, 1)
    launched, ended = threading.Barrier(5, timeout=60), threading.Barrier(5, timeout=60)

    def work() -> None:
        a, b, out = arrays(1)
        plan(a, b, out=out)
        launched.wait()
        ended.wait()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    launched.wait()
    assert memory.sizes == [4096] * 4
    assert trim() == 0 and memory.sizes == [4096] * 4  # theirs, not this thread's
    ended.wait()
    for thread in threads:
        thread.join()
    gc.collect()
    assert memory.sizes == []


def test_trim_frees_and_the_next_launch_allocates(dispatcher: Dispatcher, memory: Memory) -> None:
    plan, (a, b, out) = plan_of(dispatcher, 1), arrays(1)
    for _ in range(3):
        plan(a, b, out=out)
        assert memory.sizes == [4096]
        assert trim() == 4096 and memory.sizes == []
    assert trim() == 0 and memory.allocated == 3


class Holder:
    stream: int | None = None


def test_streams_and_devices_have_arenas_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, str, int]] = []

    def allocate(size: int, family: str, device: str, stream: int) -> tuple[int, object]:
        asked.append((size, device, stream))
        return 256 * len(asked), object()

    monkeypatch.setattr(workspace, "allocate", allocate)
    arenas, one, two = Arenas(), Holder(), Holder()
    assert arenas.address(10, "torch", "cuda:0", 7, one) == 256
    assert arenas.address(9, "cupy", "cuda:0", 7, two) == 256
    assert arenas.address(9, "torch", "cuda:0", 8, two) == 512
    assert arenas.address(9, "torch", "cuda:1", 7, two) == 768
    one.stream = two.stream = 7
    with pytest.raises(ArrayError, match="raw cannot allocate them here; pass workspace="):
        arenas.address(11, "raw", "cuda:0", 7, one)
    assert [holder.stream for holder in (one, two)] == [7, 7]  # nothing was freed
    assert arenas.address(11, "torch", "cuda:0", 7, one) == 1024
    assert [holder.stream for holder in (one, two)] == [None, None]
    assert arenas.address(5, "numpy", "cpu", 1, one) == arenas.address(5, "numpy", "cpu", 2, one)  # no streams there
    assert asked == [(10, "cuda:0", 7), (9, "cuda:0", 8), (9, "cuda:1", 7), (11, "cuda:0", 7), (5, "cpu", 0)]
    assert arenas.free() == 9 + 9 + 11 + 5
