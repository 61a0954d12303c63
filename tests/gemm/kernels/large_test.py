"""Operands of more than 2^31 elements: 5 GB and minutes, so only with KERNELWRIGHT_LARGE=1."""

from __future__ import annotations

import os
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import Dispatcher, KernelLibrary

pytestmark = pytest.mark.skipif("KERNELWRIGHT_LARGE" not in os.environ, reason="needs 5 GB: set KERNELWRIGHT_LARGE=1")

ROWS, COLUMNS = 65537, 32771
PERIOD = 4099  # rows repeat after so many, which no power of two divides
assert ROWS * COLUMNS > 2**31


@pytest.fixture(scope="module")
def dispatcher() -> Dispatcher:
    return Dispatcher([KernelLibrary.load_for("cpu", files("gemm") / "gemm")])


def row(base: np.ndarray[Any, Any], number: int) -> np.ndarray[Any, Any]:
    start = number * 7 % PERIOD
    return base[start : start + COLUMNS]


@pytest.mark.parametrize("transposed", [False, True], ids=["r", "c"])
def test_a_large_a(dispatcher: Dispatcher, transposed: bool) -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(-2, 3, COLUMNS + PERIOD).astype(np.float16)
    a = np.empty((ROWS, COLUMNS), np.float16)
    for i in range(ROWS):
        a[i] = row(base, i)
    if transposed:  # then the large matrix is A of shape (COLUMNS, ROWS), column-major
        b = rng.integers(-1, 2, (ROWS, 3)).astype(np.float16)
        expected = np.zeros((COLUMNS, 3), np.int64)
        for i in range(ROWS):
            expected += row(base, i).astype(np.int64)[:, None] * b[i].astype(np.int64)
        product = dispatcher.gemm(a.T, b)
    else:
        b = rng.integers(-1, 2, (COLUMNS, 3)).astype(np.float16)
        expected = np.array([row(base, i).astype(np.int64) @ b.astype(np.int64) for i in range(ROWS)])
        product = dispatcher.gemm(a, b)
    assert np.array_equal(product, expected.astype(np.float32).astype(np.float16))


def test_a_large_result(dispatcher: Dispatcher) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.integers(-9, 10, (ROWS, 2)).astype(np.float16), rng.integers(-9, 10, (2, COLUMNS)).astype(np.float16)
    d = np.full((ROWS, COLUMNS), np.nan, np.float16)
    dispatcher.gemm(a, b, out=d)
    for first in range(0, ROWS, 512):
        part = slice(first, first + 512)
        assert np.array_equal(d[part], a[part].astype(np.float32) @ b.astype(np.float32)), f"rows from {first}"
