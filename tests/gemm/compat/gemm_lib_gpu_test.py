"""libdispatcher_gemm_lib.so on stand-ins for the GPU runtimes: copies, devices, failures."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemm.compat.gemm_lib import GROUPS, TIMES, check_grouped, check_multi_d, check_runs, init, refused
from kernelwright.dispatch.testdata import mocks

HERE = Path(__file__).resolve().parent


def test_hip_copies_and_frees(library: Any, fake_gpu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = mocks.write_library(tmp_path / "gfx942", "MOCK_ANY_DEVICE", arch="gfx942", backend="ck_tile")
    monkeypatch.setenv("KERNELWRIGHT_HIP_LIBRARY", str(tmp_path / "nowhere.so"))
    assert "HIP runtime cannot be loaded" in refused(library, str(folder))
    monkeypatch.setenv("KERNELWRIGHT_HIP_LIBRARY", str(fake_gpu))
    fake = ctypes.CDLL(str(fake_gpu))
    init(library, folder, "fp32_rrr")  # the mock's rrr kernel wants a workspace too
    before = fake.fake_copies()
    check_runs(library, 17, 9, 33, "rrr")
    assert fake.fake_copies() == before + 3 and fake.fake_live() == 0
    memory = np.zeros(4096, np.float32)
    data, result = memory.ctypes.data, memory[2048:].ctypes.data
    assert library.dispatcher_run_gemm(data, data, data, 8, 8, 8, None) == -1
    assert b"d shares memory with a" in library.dispatcher_last_error(), "though it would be computed in copies"
    for nth in (1, 2, 3, 4):
        fake.fake_fail_allocation(nth)
        assert library.dispatcher_run_gemm(data, data, result, 8, 8, 8, None) == -1
        assert b"no memory for" in library.dispatcher_last_error() and fake.fake_live() == 0
    assert library.dispatcher_run_gemm(data, data, data, 0, 8, 8, None) == 0


@pytest.mark.parametrize("first", [0, 1])
def test_the_device_is_the_one_that_is_current_in_the_thread(
    library: Any, fake_gpu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    folder = mocks.write_library(
        tmp_path / "gfx942", "MOCK_ANY_DEVICE", arch="gfx942", backend="ck_tile", seed=str(first)
    )
    monkeypatch.setenv("KERNELWRIGHT_HIP_LIBRARY", str(fake_gpu))
    fake, mock = ctypes.CDLL(str(fake_gpu)), ctypes.CDLL(str(folder / "libmock.so"))
    launches = (ctypes.c_int * 4).in_dll(mock, "mock_launches")

    def check_on(device: int) -> None:
        """All that a call does is done on the device that is current, which stays so."""
        current = ctypes.c_int()
        assert fake.hipSetDevice(device) == 0
        check_runs(library, 17, 9, 33, "rrr")
        assert library.dispatcher_is_supported(17, 9, 33) == 1
        assert fake.hipGetDevice(ctypes.byref(current)) == 0 and current.value == device

    try:
        assert fake.hipSetDevice(first) == 0
        init(library, folder, "fp32_rrr")
        for device in (first, 1 - first, first):
            before = [fake.fake_used(0), fake.fake_used(1)], launches[:2]
            check_on(device)
            assert fake.fake_used(device) > before[0][device] and launches[device] > before[1][device]
            assert fake.fake_used(1 - device) == before[0][1 - device]
            assert launches[1 - device] == before[1][1 - device] and fake.fake_live() == 0
        with ThreadPoolExecutor(4) as pool:  # each with a current device of its own
            list(pool.map(lambda number: check_on(number % 2), range(40)))
        assert fake.fake_live() == 0 and launches[2:] == [0, 0]
    finally:
        fake.hipSetDevice(0)


def test_a_device_that_no_library_is_for_is_refused_where_it_is_current(
    library: Any, fake_gpu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = mocks.write_library(tmp_path / "gfx942", arch="gfx942", backend="ck_tile")
    monkeypatch.setenv("KERNELWRIGHT_HIP_LIBRARY", str(fake_gpu))
    fake = ctypes.CDLL(str(fake_gpu))
    init(library, folder, "fp32_rrr")
    try:
        for _ in range(2):
            assert fake.hipSetDevice(1) == 0
            data = np.zeros(64, np.float32).ctypes.data
            assert library.dispatcher_run_gemm(data, data, data, 4, 4, 4, None) == -1
            assert b"the mock device 1 is something else" in library.dispatcher_last_error()
            assert fake.hipSetDevice(0) == 0
            check_runs(library, 17, 9, 33, "rrr")
    finally:
        fake.hipSetDevice(0)


def test_cuda_copies_and_frees(built: Path, fake_gpu: Path, tmp_path: Path) -> None:
    """In a process of its own, where libcuda.so.1 is the stand-in."""
    folder = mocks.write_library(tmp_path / "sm_90a", "MOCK_ANY_DEVICE", arch="sm_90a", backend="cutlass")
    code = f"""
import ctypes, pathlib, sys
sys.path.insert(0, {str(HERE)!r})
import gemm_lib as test
library = test.opened(pathlib.Path({str(built)!r}))
test.init(library, pathlib.Path({str(folder)!r}))
test.check_runs(library, 17, 9, 33)
fake = ctypes.CDLL("libcuda.so.1")
assert fake.fake_copies() == 3 and fake.fake_live() == 0
for device in (1, 0, 1):
    before = fake.fake_used(0), fake.fake_used(1)
    fake.fake_use_other_context(device)
    test.check_runs(library, 17, 9, 33)
    assert fake.fake_other_context_is_current(device) and fake.fake_live() == 0
    assert fake.fake_used(device) > before[device] and fake.fake_used(1 - device) == before[1 - device]
"""
    paths = os.pathsep.join(path for path in sys.path if path)
    environment = {**os.environ, "LD_LIBRARY_PATH": str(fake_gpu.parent), "PYTHONPATH": paths}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)


def test_variants_are_copied_to_a_gpu_and_back(
    library: Any, fake_gpu: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    macros = ("MOCK_VARIANTS", "MOCK_ANY_DEVICE")
    folder = mocks.write_library(tmp_path / "gfx942", *macros, arch="gfx942", backend="ck_tile")
    monkeypatch.setenv("KERNELWRIGHT_HIP_LIBRARY", str(fake_gpu))
    fake = ctypes.CDLL(str(fake_gpu))
    init(library, folder, "fp32_rrr:multiply_none_d2")
    before = fake.fake_copies()
    check_multi_d(library, 17, 9, 33, 2, *TIMES)
    assert fake.fake_copies() == before + 5 and fake.fake_live() == 0
    check_grouped(library, GROUPS)
    assert fake.fake_copies() == before + 5 + 3 * 3 + 2 and fake.fake_live() == 0  # of (0, 4, 4) B, of (5, 6, 0) C
    for nth in (1, 2, 3, 4):  # workspace, A, B, C
        fake.fake_fail_allocation(nth)
        with pytest.raises(AssertionError, match="no memory for"):
            check_grouped(library, GROUPS)
        assert fake.fake_live() == 0
