"""Libraries that are loaded, dropped, closed by strangers and loaded again while other threads launch their kernels."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelLibrary
from kernelwright.dispatch.core import native
from kernelwright.dispatch.testdata import mocks
from kernelwright.problems.gemm import structs

SECONDS = float(os.environ.get("KERNELWRIGHT_RELOAD_S", "2"))
PROBLEMS = int(os.environ.get("KERNELWRIGHT_PROBLEMS", "40000"))
OUT_OF_MEMORY = 9


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    mocks.native_library()
    root = tmp_path_factory.mktemp("reload")
    return [mocks.write_library(root / name, name=name, seed=seed) for name, seed in (("r0", "0"), ("r1", "1"))]


@pytest.fixture
def alarms() -> Iterator[list[int]]:
    """A signal every millisecond, whose handler runs in the middle of whatever this thread does."""
    seen: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda number, frame: seen.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    yield seen
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_libraries_come_and_go_while_others_launch(folders: list[Path], alarms: list[int]) -> None:
    dispatcher, stop, wrong = Dispatcher(KernelLibrary.load(folders[0])), threading.Event(), []
    close = ctypes.CDLL(None).dlclose
    close.argtypes = [ctypes.c_void_p]

    def launch(seed: int) -> None:
        random = np.random.default_rng(seed)
        while not stop.is_set():
            m, n, k = random.integers(1, 40, 3)
            a = random.integers(-3, 3, (m, k)).astype(np.float32)
            b = random.integers(-3, 3, (n, k)).astype(np.float32).T
            if not np.array_equal(dispatcher.gemm(a, b), a @ b):
                wrong.append((m, n, k))

    threads = [threading.Thread(target=launch, args=(seed,)) for seed in range(2)]
    for thread in threads:
        thread.start()
    try:
        files, end, loads = 0, time.monotonic() + SECONDS, 0
        while time.monotonic() < end or loads < 4:
            for folder in folders:
                another = Dispatcher(KernelLibrary.load(folder))
                assert another.plan(GemmProblem(m=8, n=8, k=8, dtype="fp32", layout="rcr")).stages
                stranger = ctypes.CDLL(str(folder / f"lib{folder.name}.so"))
                close(stranger._handle)
                if loads == 0:
                    close(stranger._handle)  # once too often: the file stays, as our loader asked that it does
                loads += 1
            files = files or open_files()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not wrong and alarms and open_files() <= files


def test_a_dispatcher_keeps_as_many_plans_as_it_may(folders: list[Path]) -> None:
    """The rest is planned for each launch. ``KERNELWRIGHT_PROBLEMS=1000000`` poses as many."""
    library = native.library()
    handle, plan = ctypes.c_void_p(), ctypes.c_void_p()
    options = native.DispatcherOptions(struct_size=ctypes.sizeof(native.DispatcherOptions), plan_limit=1000)
    assert library.kw_dispatcher_create(ctypes.byref(options), ctypes.byref(handle)) == native.OK
    path = os.fsencode(folders[0] / "libr0.so")
    assert library.kw_dispatcher_add_library(handle, path, None) == native.OK
    problem = GemmProblem(m=0, n=4, k=4, dtype="fp32", layout="rcr").native()
    memory = (ctypes.c_float * 16)()
    address = ctypes.addressof(memory)
    arguments = structs.GemmArgs(struct_size=ctypes.sizeof(structs.GemmArgs), a=address, b=address, d=address)
    where = native.Launch(struct_size=ctypes.sizeof(native.Launch))
    before = 0
    for number in range(PROBLEMS):
        problem.n = problem.ldc = 4 + number
        status = library.kw_dispatcher_select(handle, ctypes.byref(problem), ctypes.byref(plan))
        assert status == (native.OK if number < 1000 else OUT_OF_MEMORY)
        run = library.kw_dispatcher_run
        assert run(handle, ctypes.byref(problem), ctypes.byref(where), ctypes.byref(arguments)) == native.OK
        before = before or (resident() if number == PROBLEMS // 2 else 0)
    assert resident() - before < 4 << 20
    library.kw_dispatcher_destroy(handle)


def resident() -> int:
    """Bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
