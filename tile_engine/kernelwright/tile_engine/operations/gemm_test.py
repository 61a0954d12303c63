from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.tile_engine.registry import measurable

GEMM = measurable("gemm")


def test_a_record_gets_its_defaults_and_takes_capitals() -> None:
    assert GEMM.read({"M": 2, "N": 3, "K": 4}) == {
        **{"m": 2, "n": 3, "k": 4, "batch": 1},
        **{"layout": "rcr", "dtype": "fp16"},
    }


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"m": 1, "n": 1}, "lacks k"),
        ({"m": 1, "n": 1, "k": 1, "tile": 3}, r"unknown keys \['tile'\]; allowed: m, n, k, batch, layout, dtype"),
        ({"m": -1, "n": 1, "k": 1}, "m"),
        ({"m": 1, "n": 1, "k": 1, "dtype": "fp17"}, "fp17"),
    ],
)
def test_an_illegal_record_says_what_is_wrong(record: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        GEMM.read(record)


@pytest.mark.parametrize("layout", ["rcr", "rrr", "crr", "ccr"])
@pytest.mark.parametrize("batch", [1, 3])
def test_operands_have_the_layout_and_the_exact_product(layout: str, batch: int) -> None:
    record = GEMM.read({"m": 5, "n": 7, "k": 11, "layout": layout, "batch": batch, "dtype": "bf16"})
    operands = GEMM.operands(record, seed=1)
    a, b, out = operands.arrays
    assert (a.strides[-1] == a.itemsize) == (layout[0] == "r")
    assert (b.strides[-1] == b.itemsize) == (layout[1] == "r")
    assert np.isnan(out.astype(np.float32)).all()
    assert np.array_equal(operands.exact, a.astype(np.float64) @ b.astype(np.float64))
    again = GEMM.operands(record, seed=1)
    assert np.array_equal(a, again.arrays[0]) and not np.array_equal(a, GEMM.operands(record, seed=2).arrays[0])


def test_work_and_traffic() -> None:
    record = GEMM.read({"m": 2, "n": 3, "k": 4, "batch": 5, "dtype": "int8"})
    assert GEMM.flops(record) == 2 * 2 * 3 * 4 * 5
    assert GEMM.bytes_moved(record) == 5 * (2 * 4 + 4 * 3 + 2 * 3 * 4)  # results are int32


def test_an_unknown_operation_is_named() -> None:
    with pytest.raises(ValueError, match="does not measure 'fft'; allowed: gemm"):
        measurable("fft")
