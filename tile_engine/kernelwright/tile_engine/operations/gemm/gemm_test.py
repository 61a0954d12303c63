from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.tile_engine.operations.gemm import measurable as gemm
from kernelwright.tile_engine.registry import measurable

GEMM = measurable("gemm")


def test_a_record_gets_its_defaults_and_takes_capitals() -> None:
    assert GEMM.read({"M": 2, "N": 3, "K": 4}) == {
        **{"m": 2, "n": 3, "k": 4, "batch": 1},
        **{"layout": "rcr", "dtype": "fp16", "dtype_c": "fp16"},
    }


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"m": 1, "n": 1}, "lacks k"),
        (
            {"m": 1, "n": 1, "k": 1, "tile": 3},
            r"unknown keys .*; allowed: m, n, k, batch, layout, dtype, dtype_c",
        ),
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
    a, b = operands.inputs
    assert (a.strides[-1] == a.itemsize) == (layout[0] == "r")
    assert (b.strides[-1] == b.itemsize) == (layout[1] == "r")
    assert np.isnan(operands.outs[0].astype(np.float32)).all() and operands.error() == np.inf
    again = GEMM.operands(record, seed=1)
    assert np.array_equal(a, again.inputs[0]) and not np.array_equal(a, GEMM.operands(record, seed=2).inputs[0])
    operands.outs[0][...] = a.astype(np.float64) @ b.astype(np.float64)
    assert operands.error() <= 1


@pytest.mark.parametrize("dtype", ["fp32", "int8"])
@pytest.mark.parametrize("large", [False, True])
def test_one_element_that_is_off_or_not_written_is_found(
    dtype: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:  # checked in part, which for these extents is all
        monkeypatch.setattr(gemm, "_ALL_CHECKED", 0)
    operands = GEMM.operands(GEMM.read({"m": 9, "n": 8, "k": 7, "dtype": dtype}), seed=0)
    a, b = operands.inputs
    right = a.astype(np.float64) @ b.astype(np.float64)
    operands.outs[0][...] = right
    assert operands.error() == 0
    operands.outs[0][8, 7] += 1
    assert operands.error() > 1
    operands.poison()
    operands.outs[0][:8] = right[:8]
    assert operands.error() > 1


def test_work_and_traffic() -> None:
    record = GEMM.read({"m": 2, "n": 3, "k": 4, "batch": 5, "dtype": "int8"})
    assert GEMM.flops(record) == 2 * 2 * 3 * 4 * 5
    assert GEMM.bytes_moved(record) == 5 * (2 * 4 + 4 * 3 + 2 * 3 * 4)  # results are int32


def test_an_unknown_operation_is_named() -> None:
    with pytest.raises(ValueError, match="does not measure 'fft'; allowed: attention, convolution, gemm"):
        measurable("fft")
