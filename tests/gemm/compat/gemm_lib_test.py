"""libdispatcher_gemm_lib.so through ctypes, on mock kernel libraries."""

from __future__ import annotations

import ctypes
import itertools
import json
import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gemm.compat.gemm_lib import (
    GROUPS,
    RELU,
    SIGNATURES,
    TIMES,
    check_grouped,
    check_multi_d,
    check_runs,
    init,
    opened,
    pointers,
    refused,
)
from kernelwright.dispatch.testdata import mocks

HERE = Path(__file__).resolve().parent
NATIVE = HERE.parents[2] / "dispatcher_cpp"


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
    memory = np.zeros(128, np.int32)
    data, result = memory.ctypes.data, memory[64:].ctypes.data
    assert library.dispatcher_run_gemm(data, data, result, 4, 4, 4, None) == -1
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


def test_results_share_memory_with_nothing(library: Any, tmp_path: Path) -> None:
    init(library, mocks.write_library(tmp_path / "x86_64_v3"), "fp32_rrr")
    memory, time = np.ones(4096, np.float32), ctypes.c_float(3)
    at = memory.ctypes.data
    assert library.dispatcher_run_gemm(at, at, at + 64, 4, 4, 4, None) == 0, "A may be B"
    for a, b, c, words in (
        (0, 64, 0, b"d shares memory with a"), (0, 64, 64, b"d shares memory with b"),
        (0, 256, 60, b"d shares memory with a"), (256, 64, 4, b"d shares memory with b"),
    ):  # fmt: skip
        assert library.dispatcher_run_gemm(at + a, at + b, at + c, 4, 4, 4, ctypes.byref(time)) == -1
        assert words in library.dispatcher_last_error() and time.value == -1
    library.dispatcher_cleanup()
    init(library, mocks.write_library(tmp_path / "variants", "MOCK_VARIANTS"), "fp32_rrr:add_relu_d1")
    ds = pointers([memory[64:]])
    assert library.dispatcher_run_multi_d_gemm(at, at, ds, 1, at + 4 * 65, 4, 4, 4, None) == -1
    assert b"d shares memory with multi_d[0]" in library.dispatcher_last_error()
    sizes = (ctypes.c_int64 * 2)(4, 4)
    inputs, results = pointers([memory, memory]), pointers([memory[64:], memory[72:]])
    assert library.dispatcher_run_grouped_gemm(2, sizes, sizes, sizes, inputs, inputs, results, None) == -1
    assert b"d[0] shares memory with d[1]" in library.dispatcher_last_error()


def test_threads_share_it(library: Any, tmp_path: Path) -> None:
    init(library, mocks.write_library(tmp_path / "x86_64_v3"))
    shapes = list(itertools.product((1, 8, 33), (2, 17), (1, 16, 31)))
    with ThreadPoolExecutor(4) as pool:
        assert all(time >= 0 for time in pool.map(lambda shape: check_runs(library, *shape), shapes * 2))


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

    init(library, mocks.write_library(tmp_path / "any", "MOCK_VARIANTS", "MOCK_ANY_EPILOGUE"), "fp32_rrr")
    assert library.dispatcher_get_num_d_tensors() == -1 == library.dispatcher_run_multi_d_gemm(*given)
    assert b"fp32_rrr serve any epilogue; say which" in library.dispatcher_last_error()
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


def test_the_migration_page_names_every_function() -> None:
    page = (HERE.parents[2] / "docs/migrating.md").read_text("utf-8")
    header = (NATIVE / "include/kernelwright/dispatcher/gemm_lib.h").read_text("utf-8")
    declared = set(re.findall(r"DISPATCHER_EXPORT .*?(dispatcher_\w+)\(", header))
    assert declared == set(SIGNATURES)
    mentioned = set(re.findall(r"`(dispatcher_(?!cpp|gemm_|conv_|fmha_)\w+)", page))
    assert mentioned - declared == {"dispatcher_get_kernel_config", "dispatcher_wrappers"}
    assert declared <= mentioned
