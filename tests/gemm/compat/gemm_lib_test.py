"""libdispatcher_gemm_lib.so through ctypes, on mock kernel libraries and stand-ins for the GPU runtimes."""

from __future__ import annotations

import ctypes
import functools
import itertools
import json
import operator
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch.testdata import mocks

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[2] / "dispatcher_cpp"
SIGNATURES: dict[str, tuple[Any, list[Any]]] = {
    "dispatcher_abi_version": (ctypes.c_uint32, []),
    "dispatcher_last_error": (ctypes.c_char_p, []),
    "dispatcher_init": (ctypes.c_int, []),
    "dispatcher_initialize": (ctypes.c_int, []),
    "dispatcher_init_from": (ctypes.c_int, [ctypes.c_char_p, ctypes.c_char_p]),
    "dispatcher_cleanup": (None, []),
    "dispatcher_get_kernel_count": (ctypes.c_int, []),
    "dispatcher_get_kernel_name_at": (ctypes.c_int, [ctypes.c_int, ctypes.c_char_p, ctypes.c_int]),
    "dispatcher_get_kernel_name": (ctypes.c_char_p, []),
    "dispatcher_export_registry_json": (ctypes.c_char_p, []),
    "dispatcher_is_supported": (ctypes.c_int, [ctypes.c_int64] * 3),
    "dispatcher_select_kernel": (ctypes.c_int, [*[ctypes.c_int64] * 3, ctypes.c_char_p, ctypes.c_int]),
    "dispatcher_run_gemm": (
        ctypes.c_int,
        [*[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3, ctypes.POINTER(ctypes.c_float)],
    ),
    "dispatcher_get_num_d_tensors": (ctypes.c_int, []),
    "dispatcher_run_multi_d_gemm": (
        ctypes.c_int,
        [
            *([ctypes.c_void_p] * 3 + [ctypes.c_int, ctypes.c_void_p]),
            *([ctypes.c_int64] * 3 + [ctypes.POINTER(ctypes.c_float)]),
        ],
    ),
    "dispatcher_run_grouped_gemm": (
        ctypes.c_int,
        [ctypes.c_int, *[ctypes.c_void_p] * 6, ctypes.POINTER(ctypes.c_float)],
    ),
}


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged library, or one compiled here."""
    file = resources.files("kernelwright.dispatch").joinpath("libdispatcher_gemm_lib.so")
    if file.is_file():
        return Path(str(file))
    sources = [str(path) for folder in ("src", "compat") for path in sorted((NATIVE / folder).rglob("*.cpp"))]
    flags = ["-std=c++17", "-O1", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics"]
    output = tmp_path_factory.mktemp("gemm_lib") / "libdispatcher_gemm_lib.so"
    return mocks.compile_shared([*mocks.compilers()[1], *flags, *sources, "-ldl", "-lpthread"], output)


@pytest.fixture(scope="session")
def fake_gpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("fake") / "libcuda.so.1"
    return mocks.compile_shared([*mocks.compilers()[0], "-std=c99", "-O1", str(HERE / "fake_gpu.c")], output)


def opened(path: Path) -> Any:
    library = ctypes.CDLL(str(path))
    for name, (result, arguments) in SIGNATURES.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


@pytest.fixture
def library(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for variable in ("KERNELWRIGHT_GEMM_KERNELS", "KERNELWRIGHT_GEMM_TYPES", "KERNELWRIGHT_HIP_LIBRARY"):
        monkeypatch.delenv(variable, raising=False)
    library = opened(built)
    yield library
    library.dispatcher_cleanup()


def init(library: Any, kernels: Path, types: str | None = "fp32_rcr") -> None:
    status = library.dispatcher_init_from(os.fsencode(kernels), types.encode() if types else None)
    assert status == 0 and library.dispatcher_last_error() == b"", library.dispatcher_last_error()


def refused(library: Any, kernels: str, types: str | None = "fp32_rcr") -> str:
    assert library.dispatcher_init_from(kernels.encode(), types.encode() if types else None) == -1
    assert library.dispatcher_get_kernel_count() == 0  # which is no failure: the sentence stays
    return str(library.dispatcher_last_error().decode())


def operands(m: int, n: int, k: int, layout: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Small whole numbers, whose products are exact, in the orders of the layout."""
    rng = np.random.default_rng(m * 100 + n)
    a, b = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((m, k), (k, n)))
    return np.asarray(a, order="C" if layout[0] == "r" else "F"), np.asarray(b, order="C" if layout[1] == "r" else "F")


def check_runs(library: Any, m: int, n: int, k: int, layout: str = "rcr") -> float:
    """One timed call, compared element by element; the time in ms."""
    a, b = operands(m, n, k, layout)
    c = np.full((m, n), np.nan, np.float32)
    time = ctypes.c_float(-2)
    status = library.dispatcher_run_gemm(a.ctypes.data, b.ctypes.data, c.ctypes.data, m, n, k, ctypes.byref(time))
    assert status == 0, library.dispatcher_last_error()
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.astype(np.float64))
    return time.value


@pytest.mark.parametrize("layout", ["rcr", "rrr", "ccr", "crr"])
def test_every_layout_is_computed_on_cpu(library: Any, tmp_path: Path, layout: str) -> None:
    init(library, mocks.write_library(tmp_path / "x86_64_v3"), f"fp32_{layout}")
    for shape in ((1, 1, 1), (17, 9, 33), (64, 64, 64), (5, 6, 0)):
        assert library.dispatcher_is_supported(*shape) == 1
        assert check_runs(library, *shape, layout) >= 0


def test_registry_names_and_selection_agree(library: Any, tmp_path: Path) -> None:
    assert library.dispatcher_abi_version() == 1 and library.dispatcher_export_registry_json() is None
    init(library, mocks.write_library(tmp_path / "x86_64_v3"))
    count = library.dispatcher_get_kernel_count()
    text = ctypes.create_string_buffer(256)
    names = []
    for index in range(count):
        assert library.dispatcher_get_kernel_name_at(index, text, len(text)) == 0
        names.append(text.value.decode())
    registry = json.loads(library.dispatcher_export_registry_json())
    assert count == len(mocks.KERNELS) and sorted(names) == sorted(mocks.KERNELS.values())
    assert [kernel["name"] for kernel in registry["kernels"]] == names
    assert library.dispatcher_select_kernel(64, 64, 64, text, len(text)) == 0
    assert text.value.decode() in names and "fp32_rcr" in text.value.decode()
    assert library.dispatcher_get_kernel_name_at(count, text, len(text)) == -1
    assert library.dispatcher_select_kernel(64, 64, 64, text, 5) == -1
    assert b"the buffer has 5" in library.dispatcher_last_error()


def test_the_name_is_of_the_kernel_that_ran_last_in_the_thread(library: Any, tmp_path: Path) -> None:
    assert library.dispatcher_get_kernel_name() is None or library.dispatcher_get_kernel_count() == 0
    init(library, mocks.write_library(tmp_path / "x86_64_v3"))
    text = ctypes.create_string_buffer(256)
    seen: list[bytes] = []
    other = threading.Thread(target=lambda: seen.append(library.dispatcher_get_kernel_name()))
    check_runs(library, 32, 32, 32)
    other.start()
    other.join()
    assert library.dispatcher_get_kernel_name_at(0, text, len(text)) == 0 and seen == [text.value]
    assert library.dispatcher_select_kernel(32, 32, 32, text, len(text)) == 0
    assert library.dispatcher_get_kernel_name() == text.value


def test_the_client_of_the_ck_tile_dispatcher_loads(built: Path, tmp_path: Path) -> None:
    """Its Python client binds these when it loads, under one of two file names."""
    library = ctypes.CDLL(str(shutil.copy(built, tmp_path / "libdispatcher_gemm.so")))
    for name in (
        *("initialize", "init", "get_kernel_count", "is_supported", "run_gemm", "get_kernel_name", "select_kernel"),
        *("export_registry_json", "cleanup"),
    ):
        assert getattr(library, f"dispatcher_{name}")
    packaged = resources.files("kernelwright.dispatch")
    assert packaged.joinpath("libdispatcher_gemm.so").is_file() == packaged.joinpath(built.name).is_file()


def test_what_no_kernel_serves_is_minus_two_with_reasons(library: Any, tmp_path: Path) -> None:
    init(library, mocks.write_library(tmp_path / "x86_64_v3"), "bf16_rcr")
    time = ctypes.c_float(3)
    data = np.zeros(64, np.uint16).ctypes.data
    assert library.dispatcher_is_supported(4, 4, 4) == 0 and b"bf16" in library.dispatcher_last_error()
    assert library.dispatcher_run_gemm(data, data, data, 4, 4, 4, ctypes.byref(time)) == -2 and time.value == -1
    assert library.dispatcher_select_kernel(4, 4, 4, ctypes.create_string_buffer(9), 9) == -2


def test_failures_are_minus_one_with_a_sentence(library: Any, tmp_path: Path) -> None:
    folder = mocks.write_library(tmp_path / "x86_64_v3")
    init(library, folder, "int8_rcr")
    data = np.zeros(64, np.int32).ctypes.data
    assert library.dispatcher_run_gemm(data, data, data, 4, 4, 4, None) == -1
    assert b"the mock runtime said no" in library.dispatcher_last_error()
    assert library.dispatcher_run_gemm(data, None, data, 4, 4, 4, None) == -1
    assert b"b is null" in library.dispatcher_last_error()
    assert library.dispatcher_run_gemm(data, data, data, -4, 4, 4, None) == -1
    assert b"m = -4 is negative" in library.dispatcher_last_error()
    assert library.dispatcher_run_gemm(data, data, data, 2**40, 4, 2**40, None) == -1
    assert b"overflows" in library.dispatcher_last_error()


@pytest.mark.parametrize("types", ["fp16", "fp16_rc", "fp16_rcrr", "half_rcr", "fp16_rxr", "int32_rcr", "fp8_rcr_b"])
def test_wrong_types_are_refused(library: Any, tmp_path: Path, types: str) -> None:
    folder = mocks.write_library(tmp_path / "x86_64_v3")
    assert f"types = {types}; allowed: <dtype>_<layouts>" in refused(library, str(folder), types)


def test_types_that_differ_must_be_chosen(library: Any, tmp_path: Path) -> None:
    folder = mocks.write_library(tmp_path / "x86_64_v3")
    error = refused(library, str(folder), None)
    assert "kernels are of 6 types; say which one" in error and "fp32_ccr" in error and "fp16_rrr" in error


def test_libraries_that_cannot_be_used_are_told_apart(library: Any, tmp_path: Path) -> None:
    other = mocks.write_library(tmp_path / "all/gfx942", "MOCK_DEVICE=KW_ARCH_MISMATCH", arch="gfx942")
    error = refused(library, str(tmp_path / "all"))
    assert "this machine runs none of its libraries" in error and "is something else" in error
    init(library, mocks.write_library(tmp_path / "all/x86_64_v3").parent)
    assert library.dispatcher_get_kernel_count() == len(mocks.KERNELS), "the other library is left out"
    library.dispatcher_cleanup()
    (tmp_path / "all/x86_64_v3/libbroken.so").write_text("not a library")
    assert "libbroken.so" in refused(library, str(tmp_path / "all"))
    (tmp_path / "empty").mkdir()
    assert "it holds no lib*.so" in refused(library, str(tmp_path / "empty"))
    assert "nowhere" in refused(library, str(tmp_path / "nowhere"))
    gpu = mocks.write_library(tmp_path / "gpu", "MOCK_ANY_DEVICE", arch="gfx950", backend="ck_tile", seed="c")
    both = f"{mocks.write_library(tmp_path / 'cpu')}:{gpu}"
    assert "several backends" in refused(library, both) and other.is_dir()


def test_kernels_and_types_come_from_the_environment_or_from_beside(
    library: Any, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert library.dispatcher_init() == -1
    error = library.dispatcher_last_error().decode()
    assert "dispatcher_gemm_kernels" in error and "KERNELWRIGHT_GEMM_KERNELS" in error
    folder = mocks.write_library(tmp_path / "dispatcher_gemm_kernels/x86_64_v3")
    monkeypatch.setenv("KERNELWRIGHT_GEMM_KERNELS", str(folder / "libmock.so"))
    monkeypatch.setenv("KERNELWRIGHT_GEMM_TYPES", "fp32_rrr")
    assert library.dispatcher_initialize() == 0 == library.dispatcher_init()
    check_runs(library, 3, 4, 5, "rrr")
    monkeypatch.delenv("KERNELWRIGHT_GEMM_KERNELS")
    copied = opened(Path(shutil.copy(built, tmp_path / "libdispatcher_gemm_lib.so")))
    assert copied.dispatcher_init() == 0, copied.dispatcher_last_error()
    check_runs(copied, 3, 4, 5, "rrr")
    copied.dispatcher_cleanup()
    site = tmp_path / "site"
    (site / "kernelwright/dispatch").mkdir(parents=True)
    installed = opened(Path(shutil.copy(built, site / "kernelwright/dispatch/libdispatcher_gemm_lib.so")))
    mocks.write_library(site / "kernelwright_kernels/gemm/x86_64_v3")
    assert installed.dispatcher_init() == 0, installed.dispatcher_last_error()
    check_runs(installed, 3, 4, 5, "rrr")
    installed.dispatcher_cleanup()


def test_threads_share_it(library: Any, tmp_path: Path) -> None:
    init(library, mocks.write_library(tmp_path / "x86_64_v3"))
    shapes = list(itertools.product((1, 8, 33), (2, 17), (1, 16, 31)))
    with ThreadPoolExecutor(4) as pool:
        assert all(time >= 0 for time in pool.map(lambda shape: check_runs(library, *shape), shapes * 2))


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
    data = np.zeros(4096, np.float32).ctypes.data
    for nth in (1, 2, 3, 4):
        fake.fake_fail_allocation(nth)
        assert library.dispatcher_run_gemm(data, data, data, 8, 8, 8, None) == -1
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
import gemm_lib_test as test
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


def pointers(arrays: Sequence[np.ndarray[Any, Any] | None]) -> Any:
    return (ctypes.c_void_p * len(arrays))(*[None if one is None else one.ctypes.data for one in arrays])


def check_multi_d(library: Any, m: int, n: int, k: int, count: int, op: Any, activation: Any) -> None:
    a, b = operands(m, n, k, "rrr")
    ds = [np.random.default_rng(i).integers(-3, 4, (m, n)).astype(np.float32) for i in range(count)]
    c, time = np.full((m, n), np.nan, np.float32), ctypes.c_float(-2)
    given = (a.ctypes.data, b.ctypes.data, pointers(ds), count, c.ctypes.data, m, n, k, ctypes.byref(time))
    assert library.dispatcher_run_multi_d_gemm(*given) == 0, library.dispatcher_last_error()
    np.testing.assert_array_equal(c, activation(functools.reduce(op, ds, a.astype(np.float64) @ b.astype(np.float64))))
    assert time.value >= 0


def check_grouped(library: Any, shapes: Sequence[tuple[int, int, int]]) -> None:
    pairs = [operands(*shape, "rrr") for shape in shapes]
    outs = [np.full(shape[:2], np.nan, np.float32) for shape in shapes]
    sizes = [(ctypes.c_int64 * len(shapes))(*column) for column in zip(*shapes, strict=True)] or [None] * 3
    a, b = (pointers([pair[index] for pair in pairs]) for index in (0, 1))
    time = ctypes.c_float(-2)
    status = library.dispatcher_run_grouped_gemm(len(shapes), *sizes, a, b, pointers(outs), ctypes.byref(time))
    assert status == 0 and time.value >= 0, library.dispatcher_last_error()
    for (left, right), out in zip(pairs, outs, strict=True):
        np.testing.assert_array_equal(out, left.astype(np.float64) @ right.astype(np.float64))


GROUPS = [(17, 9, 33), (1, 1, 1), (0, 4, 4), (5, 6, 0), (64, 3, 8)]
RELU = (operator.add, lambda x: np.maximum(x, 0))
TIMES = (operator.mul, lambda x: x)


@pytest.mark.parametrize(
    ("epilogue", "count", "work"), [("add_relu_d1", 1, RELU), ("multiply_none_d2", 2, TIMES)], ids=["add", "multiply"]
)
def test_d_tensors_follow_the_product(library: Any, tmp_path: Path, epilogue: str, count: int, work: Any) -> None:
    init(library, mocks.write_library(tmp_path / "x86_64_v3", "MOCK_VARIANTS"), f"fp32_rrr:{epilogue}")
    assert library.dispatcher_get_num_d_tensors() == count
    for shape in ((1, 1, 1), (17, 9, 33), (5, 6, 0), (0, 3, 4)):
        check_multi_d(library, *shape, count, *work)
        check_runs(library, *shape, "rrr")  # without D tensors another kernel runs


def test_which_d_tensors_are_meant_must_be_clear(library: Any, tmp_path: Path) -> None:
    init(library, mocks.write_library(tmp_path / "x86_64_v3", "MOCK_VARIANTS"), "fp32_rrr")
    data, time = np.zeros(64, np.float32), ctypes.c_float(3)
    given = (data.ctypes.data, data.ctypes.data, pointers([data]), 1, data.ctypes.data, 4, 4, 4, ctypes.byref(time))
    assert library.dispatcher_get_num_d_tensors() == -1
    assert library.dispatcher_run_multi_d_gemm(*given) == -1 and time.value == -1
    assert b"fp32_rrr have 2 epilogues; say which" in library.dispatcher_last_error()
    assert b": fp32_rrr:add_relu_d1, fp32_rrr:multiply_none_d2" in library.dispatcher_last_error()
    library.dispatcher_cleanup()

    init(library, tmp_path / "x86_64_v3", "fp32_rrr:multiply_none_d2")
    assert library.dispatcher_run_multi_d_gemm(*given) == -1
    assert b"1 D tensors; allowed: the 2 that" in library.dispatcher_last_error()
    ds = pointers([data, None])
    assert library.dispatcher_run_multi_d_gemm(*given[:2], ds, 2, *given[4:]) == -1
    assert b"multi_d[1] is null" in library.dispatcher_last_error()
    assert library.dispatcher_run_multi_d_gemm(*given[:2], None, 2, *given[4:]) == -1
    assert b"in a null array" in library.dispatcher_last_error()
    library.dispatcher_cleanup()

    init(library, mocks.write_library(tmp_path / "plain"), "fp32_rrr")
    assert library.dispatcher_get_num_d_tensors() == -2 == library.dispatcher_run_multi_d_gemm(*given)
    assert b"no kernel for fp32_rrr takes D tensors" in library.dispatcher_last_error()
    library.dispatcher_cleanup()
    assert library.dispatcher_get_num_d_tensors() == -1 == library.dispatcher_run_multi_d_gemm(*given)
    for wrong in ("", "add", "add_relu", "add_relu_d0", "add_relu_d5", "minus_none_d1", "add_swish_d1"):
        assert f"types = fp32_rrr:{wrong}; allowed behind" in refused(
            library, str(tmp_path / "plain"), f"fp32_rrr:{wrong}"
        )


def test_groups_have_sizes_of_their_own(library: Any, tmp_path: Path) -> None:
    init(library, mocks.write_library(tmp_path / "x86_64_v3", "MOCK_VARIANTS"), "fp32_rrr")
    check_grouped(library, GROUPS)
    check_grouped(library, [])
    one, data, time = (ctypes.c_int64 * 1)(4), np.zeros(64, np.float32), ctypes.c_float(3)
    matrices = pointers([data])
    for given, words in (
        ((-1, one, one, one, matrices, matrices, matrices), b"group_count = -1; allowed"),
        ((1, one, None, one, matrices, matrices, matrices), b"as many ms, ns and ks"),
        ((1, one, one, one, matrices, None, matrices), b"is null"),
        ((1, one, one, one, matrices, pointers([None]), matrices), b"b[0] is null"),
        ((1, (ctypes.c_int64 * 1)(-4), one, one, matrices, matrices, matrices), b"-4"),
    ):
        assert library.dispatcher_run_grouped_gemm(*given, ctypes.byref(time)) == -1 and time.value == -1
        assert words in library.dispatcher_last_error()
    much = (ctypes.c_int64 * 1)(1001)
    assert library.dispatcher_run_grouped_gemm(1, one, one, much, matrices, matrices, matrices, None) == -2
    assert b"the mock serves 1000" in library.dispatcher_last_error()


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


def test_the_migration_page_names_every_function() -> None:
    page = (HERE.parents[2] / "docs/migrating.md").read_text("utf-8")
    header = (NATIVE / "include/kernelwright/dispatcher/gemm_lib.h").read_text("utf-8")
    declared = set(re.findall(r"DISPATCHER_EXPORT .*?(dispatcher_\w+)\(", header))
    assert declared == set(SIGNATURES)
    mentioned = set(re.findall(r"`(dispatcher_(?!cpp|gemm_)\w+)", page))
    assert mentioned - declared == {"dispatcher_get_kernel_config", "dispatcher_wrappers"}
    assert declared <= mentioned
