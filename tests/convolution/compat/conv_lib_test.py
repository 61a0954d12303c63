"""libdispatcher_conv_lib.so through ctypes, on real CPU kernels."""

from __future__ import annotations

import ctypes
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from convolution.compat.client import (
    DIRECTIONS,
    FAMILIAR,
    OLDER,
    OWN,
    WeightProblem,
    check_runs,
    native_problem,
    opened,
)
from convolution.correctness.cases import random_problems
from kernelwright.dispatch import ConvProblem
from kernelwright.dispatch.testdata import mocks

ROOT = Path(__file__).resolve().parents[3]
ALIASES = ("libdispatcher_conv.so", "libdispatcher_conv_bwdw_lib.so")


def init(library: Any, kernels: Path, dtype: bytes | None = b"fp32") -> None:
    assert library.conv_dispatcher_init_from(bytes(kernels), dtype) == 0, library.conv_dispatcher_last_error()
    assert library.conv_dispatcher_last_error() == b""


def symmetric(direction: str) -> list[ConvProblem]:
    """Random problems of two and three dimensions, with the padding that the struct can say."""
    names = ("n", "c", "k", "size", "filter", "groups", "stride", "dilation", "pad_left")
    drawn = (p for p in random_problems(1, direction) if len(p.sizes) == 2 or (p.sizes[0] > 1 and len(p.sizes) == 3))
    given = ({name: getattr(p, name) for name in names} for p in drawn)
    padded = (f | {"pad_left": tuple(map(max, f["pad_left"], f["dilation"]))} for f in given if max(f["filter"]) < 5)
    return [ConvProblem(direction, **fields) for fields in islice(padded, 25)]


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_results_are_right(library: Any, kernels: Path, direction: str) -> None:
    init(library, kernels)
    for p in symmetric(direction):
        assert library.conv_dispatcher_is_supported(native_problem(p)) == 1, library.conv_dispatcher_last_error()
        check_runs(library, p)


@pytest.mark.parametrize("slices", [-1, 0, 1, 3])
def test_backward_weight_in_slices(library: Any, kernels: Path, slices: int) -> None:
    init(library, kernels)
    problem = native_problem(symmetric("backward_weight")[0])
    problem.split_k = slices
    assert library.conv_dispatcher_is_supported(problem) == (slices < 2), library.conv_dispatcher_last_error()
    assert (b"split_k is 3" in library.conv_dispatcher_last_error()) == (slices == 3)  # CPU kernels add up themselves


def test_names_counts_and_selection(library: Any, kernels: Path) -> None:
    for name in ("has_kernels", "has_bwd_data", "has_bwd_weight", "get_kernel_count"):
        assert getattr(library, f"conv_dispatcher_{name}")() == 0
    init(library, kernels)
    assert library.conv_dispatcher_version() == b"2.0.0"
    assert library.conv_dispatcher_get_kernel_count() == 4
    for name in ("has_kernels", "has_bwd_data", "has_bwd_weight"):
        assert getattr(library, f"conv_dispatcher_{name}")() == 1
    text, names = ctypes.create_string_buffer(256), set()
    for index in range(4):
        assert library.conv_dispatcher_get_kernel_name(index, text, 256) == 0
        names.add(text.value)
    assert len(names) == 4
    for index, buffer, size in ((4, text, 256), (-1, text, 256), (0, text, 5), (0, None, 0)):
        assert library.conv_dispatcher_get_kernel_name(index, buffer, size) == -1
    problem = native_problem(symmetric("forward")[0])
    assert library.conv_dispatcher_select_kernel(problem, text, 256) == 0 and text.value in names
    assert b"_fwd_fp32_" in text.value
    assert library.conv_dispatcher_select_kernel(problem, text, 5) == -1
    assert b"the buffer has 5" in library.conv_dispatcher_last_error()


def test_the_dtype_decides(library: Any, kernels: Path) -> None:
    assert library.conv_dispatcher_init_from(bytes(kernels), None) == -1
    assert b"kernels are of 2 dtypes; say which one" in library.conv_dispatcher_last_error()
    assert library.conv_dispatcher_last_error().endswith(b": fp32, bf16")
    assert library.conv_dispatcher_init_from(bytes(kernels), b"half") == -1
    assert b"dtype = half; allowed: fp32, fp16, bf16" in library.conv_dispatcher_last_error()
    init(library, kernels, b"bf16")
    assert (library.conv_dispatcher_has_kernels(), library.conv_dispatcher_has_bwd_data()) == (1, 0)
    zeros = np.zeros(1 << 16, np.uint16)
    data = zeros.ctypes.data
    problem = native_problem(symmetric("backward_data")[0])
    assert library.conv_dispatcher_is_supported(problem) == 0
    assert library.conv_dispatcher_run(data, data, data, problem, None) == -2
    assert b"bf16" in library.conv_dispatcher_last_error()


def test_libraries_of_another_operation_are_told(library: Any, tmp_path: Path) -> None:
    assert library.conv_dispatcher_init_from(bytes(mocks.write_library(tmp_path / "gemm")), None) == -1
    assert b"no convolution kernels" in library.conv_dispatcher_last_error()


def test_wrong_arguments_are_minus_one_with_a_sentence(library: Any, kernels: Path) -> None:
    zeros = np.zeros(1 << 16, np.float32)
    data = zeros.ctypes.data
    problem = native_problem(ConvProblem("forward", 1, 4, 4, (6, 6), 3))
    assert library.conv_dispatcher_run(data, data, data, problem, None) == -1
    assert b"call conv_dispatcher_init() first" in library.conv_dispatcher_last_error()
    init(library, kernels)
    assert library.conv_dispatcher_run(data, None, data, problem, None) == -1
    assert b"b is null" in library.conv_dispatcher_last_error()
    assert library.conv_dispatcher_run(data, data, data, None, None) == -1
    assert b"problem is null" in library.conv_dispatcher_last_error()
    for field, value, words in (
        ("direction", 3, b"direction = 3; allowed: 0 forward, 1"), ("C", 5, b"c = 5"), ("G", 0, b"groups = 0"),
        ("stride_h", 0, b"stride along h = 0"), ("filter_y", 9, b"leaves no output along h"),
        ("pad_w", -1, b"pad"), ("N", -1, b"n = -1"),
    ):  # fmt: skip
        wrong = native_problem(ConvProblem("forward", 1, 4, 4, (6, 6), 3, groups=2))
        setattr(wrong, field, value)
        assert library.conv_dispatcher_run(data, data, data, wrong, None) == -1
        assert words in library.conv_dispatcher_last_error(), library.conv_dispatcher_last_error()
        assert library.conv_dispatcher_is_supported(wrong) == 0
    huge = native_problem(ConvProblem("forward", 1, 4, 4, (6, 6), 3))
    for field in ("N", "C", "input_h", "input_w", "K"):
        setattr(huge, field, 2**31 - 1)
    assert library.conv_dispatcher_run(data, data, data, huge, None) == -1


def test_the_clients_of_the_ck_tile_dispatcher_load(built: Path, kernels: Path, tmp_path: Path) -> None:
    """They bind these when they load, under one of three file names, and initialise from what lies beside the file."""
    shutil.copytree(kernels, tmp_path / "dispatcher_conv_kernels/x86_64_v3")
    packaged = resources.files("kernelwright.dispatch")
    for alias in (built.name, *ALIASES):
        library = opened(Path(shutil.copy(built, tmp_path / alias)))
        assert all(getattr(library, name) for name in {**FAMILIAR, **OLDER})
        assert library.conv_dispatcher_init() == -1, "the kernels are of two dtypes"
        assert packaged.joinpath(alias).is_file() == packaged.joinpath(built.name).is_file()


def test_kernels_beside_the_file_and_the_environment(
    built: Path, kernels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KERNELWRIGHT_CONV_KERNELS", raising=False)
    monkeypatch.setenv("KERNELWRIGHT_CONV_DTYPE", "fp32")
    library = opened(Path(shutil.copy(built, tmp_path / built.name)))
    assert library.conv_dispatcher_init() == -1
    assert b"dispatcher_conv_kernels" in library.conv_dispatcher_last_error()
    assert b"KERNELWRIGHT_CONV_KERNELS" in library.conv_dispatcher_last_error()
    shutil.copytree(kernels, tmp_path / "dispatcher_conv_kernels/x86_64_v3")
    assert library.conv_dispatcher_init() == 0 == library.conv_dispatcher_init()
    check_runs(library, symmetric("forward")[0])
    assert library.conv_dispatcher_cleanup() == 0


def test_the_older_library_for_backward_weight(library: Any, kernels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_CONV_KERNELS", str(kernels))
    monkeypatch.setenv("KERNELWRIGHT_CONV_DTYPE", "fp32")
    assert library.conv_bwdw_init() == 0 and library.conv_bwdw_version() == b"1.0.0"
    assert library.conv_bwdw_has_kernels() == 1 == library.conv_bwdw_get_kernel_count()
    text = ctypes.create_string_buffer(256)
    assert library.conv_bwdw_get_kernel_name(0, text, 256) == 0 and b"_bwd_weight_fp32_" in text.value
    assert library.conv_bwdw_get_kernel_name(1, text, 256) == -1
    assert b"index = 1; allowed: below 1" in library.conv_dispatcher_last_error()
    p = symmetric("backward_weight")[0]
    full, x, dy = native_problem(p), np.ones(p.x_shape, np.float32), np.ones(p.y_shape, np.float32)
    older = WeightProblem(**{name: getattr(full, name) for name, _ in WeightProblem._fields_})
    results = [np.full(p.w_shape, np.nan, np.float32) for _ in range(2)]
    assert library.conv_bwdw_run(x.ctypes.data, dy.ctypes.data, results[0].ctypes.data, older, None) > 0
    assert library.conv_dispatcher_run(x.ctypes.data, dy.ctypes.data, results[1].ctypes.data, full, None) > 0
    np.testing.assert_array_equal(*results)
    assert library.conv_bwdw_run(x.ctypes.data, dy.ctypes.data, results[0].ctypes.data, None, None) == -1
    library.conv_bwdw_cleanup()
    assert library.conv_bwdw_has_kernels() == 0


def test_threads_share_it(library: Any, kernels: Path) -> None:
    init(library, kernels)
    problems = [p for direction in DIRECTIONS for p in symmetric(direction)[:6]]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda p: check_runs(library, p), problems))


def test_the_header_and_the_migration_page_name_every_function() -> None:
    header = (ROOT / "dispatcher_cpp/include/kernelwright/dispatcher/conv_lib.h").read_text("utf-8")
    declared = set(re.findall(r"CONV_DISPATCHER_EXPORT .*?(conv_\w+)\(", header))
    assert declared == {*FAMILIAR, *OLDER, *OWN}
    page = (ROOT / "docs/migrating.md").read_text("utf-8")
    assert {name for name in declared if f"`{name}" not in page} == set()
