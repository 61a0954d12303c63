from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch.operations.norm import NormProblem
from kernelwright.tile_engine.registry import measurable

NORM = measurable("norm")
FORMS: list[dict[str, Any]] = [
    {}, {"kind": "layer", "bias": 1, "residual": 1}, {"dtype": "bf16", "dtype_y": "int8"}, {"dtype_y": "fp8"},
    {"kind": "layer", "bias": 1, "direction": "backward", "residual": 1}, {"weight": 0, "direction": "backward"},
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_an_element_that_is_off_or_not_written_is_found(form: dict[str, Any]) -> None:
    record = NORM.read({"rows": 5, "columns": 33, **form})
    operands: Any = NORM.operands(record, seed=1)
    assert operands.error() == np.inf
    expected = operands._results()
    for name, out in zip(operands.names[len(operands.inputs) :], operands.outs, strict=True):
        exact = expected[name][0]
        out[...] = exact
        if name == "out" and record["dtype_y"] in ("int8", "fp8"):
            scaled = exact / expected["scales"][0][:, None]
            out[...] = np.rint(scaled) if out.dtype == np.int8 else scaled
    assert 0 < operands.error() <= 1 or not form
    for out in operands.outs:
        kept = out.copy()
        at = np.unravel_index(np.abs(out.astype(np.float32)).argmax(), out.shape)
        out[at] = out[at].astype(np.float32) * np.float32(0.8)
        assert operands.error() > 1
        out[...] = kept
        out[at] = -128 if out.dtype == np.int8 else np.nan
        assert operands.error() == np.inf
        out[...] = kept


def test_a_problem_is_posed_by_its_record() -> None:
    for key in NORM.problem_sets.keys:
        for given in NORM.problem_sets.records(key):
            record = NORM.read(given)
            problem = NORM.problem(record)
            assert NORM.record_of(problem) == record and NORM.flops(record) > 0 and NORM.bytes_moved(record) > 0
    assert NORM.record_of(NormProblem("rms", 0, 5)) is NORM.record_of(object()) is None


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"rows": 1}, "lacks columns"),
        ({"rows": 1, "columns": 1, "m": 3}, r"unknown keys \['m'\]"),
        ({"rows": 1, "columns": 1, "weight": 2}, "weight is neither 0 nor 1"),
        ({"rows": 1, "columns": 1, "direction": "up"}, "direction is 'up'; allowed: forward, backward"),
        ({"rows": 1, "columns": 1, "bias": 1}, "bias is given; allowed for rms: none"),
    ],
)
def test_an_illegal_record_says_what_is_wrong(record: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NORM.read(record)
