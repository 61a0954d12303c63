from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.dispatch import ConvProblem
from kernelwright.tile_engine.operations.convolution import measurable as convolution
from kernelwright.tile_engine.operations.convolution.measurable import ConvOperands, exact_result
from kernelwright.tile_engine.registry import measurable

CONV = measurable("convolution")


def direct(record: dict[str, Any], x: Any, w: Any) -> Any:
    """Forward in 2D, output point by output point."""
    p = CONV.problem(CONV.read(record))
    (left_h, left_w), (stride_h, stride_w), (dil_h, dil_w) = p.pad_left, p.stride, p.dilation
    wide = np.pad(x, ((0, 0), (left_h, left_h), (left_w, left_w), (0, 0))).astype(np.float64)
    result = np.zeros(p.y_shape)
    per_in, per_out = p.c // p.groups, p.k // p.groups
    for h in range(p.out_size[0]):
        for v in range(p.out_size[1]):
            seen = wide[:, h * stride_h :: dil_h, v * stride_w :: dil_w][:, : w.shape[1], : w.shape[2]]
            for g in range(p.groups):
                part = seen[..., g * per_in : (g + 1) * per_in]
                of_group = slice(g * per_out, (g + 1) * per_out)
                result[:, h, v, of_group] = np.einsum("nhwc,khwc->nk", part, w[of_group].astype(np.float64))
    return result


@settings(deadline=None)  # other builds share the machine
@given(st.data())
def test_exact_results_are_those_of_the_definition_and_its_adjoints(data: st.DataObject) -> None:
    def number(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    g = number(1, 2)
    record = {
        "n": number(1, 2),
        "c": g * number(1, 3),
        "k": g * number(1, 3),
        "g": g,
        "y": number(1, 3),
        "x": number(1, 2),
    }
    record |= {"hi": number(5, 7), "wi": number(5, 6), "stride_h": number(1, 2), "stride_w": number(1, 3)}
    record |= {"pad_h": number(0, 1), "pad_w": number(0, 2), "dilation_h": number(1, 2)}
    p = CONV.problem(CONV.read(record))
    draw = np.random.default_rng(0)
    x, w, y = (draw.integers(-2, 3, shape).astype(np.float32) for shape in (p.x_shape, p.w_shape, p.y_shape))
    forward = exact_result(p, {"x": x, "w": w, "y": y})
    np.testing.assert_array_equal(forward, direct(record, x, w))
    inner = float((forward * y).sum())
    for direction, name, other in (("backward_data", "dx", x), ("backward_weight", "dw", w)):
        gradient = exact_result(CONV.problem(CONV.read({**record, "direction": direction})), {"x": x, "w": w, "y": y})
        assert gradient.shape == other.shape, name
        assert float((gradient * other).sum()) == inner  # the adjoint of a linear map


@pytest.mark.parametrize("direction", ["forward", "backward_data", "backward_weight"])
@pytest.mark.parametrize("large", [False, True])
def test_an_element_that_is_off_or_not_written_is_found(
    direction: str, large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:  # checked in part, which here is all
        monkeypatch.setattr(convolution, "_ALL_CHECKED", 0)
    record = CONV.read({"n": 1, "c": 3, "k": 4, "hi": 5, "wi": 6, "y": 3, "x": 3, "pad_h": 1, "direction": direction})
    operands = CONV.operands(record, seed=3)
    assert isinstance(operands, ConvOperands) and operands.error() == np.inf
    tensors = dict(zip(operands._names, (*operands.inputs, *operands.outs), strict=True))
    operands.outs[0][...] = exact_result(CONV.problem(record), tensors)
    assert operands.error() == 0
    operands.outs[0].reshape(-1)[-1] += 1
    assert operands.error() > 1


@pytest.mark.parametrize("direction", ["forward", "backward_data", "backward_weight"])
def test_a_problem_is_posed_by_its_record(direction: str) -> None:
    flat = ConvProblem(direction, 2, 6, 9, (7, 8), (3, 2), groups=3, stride=(2, 1), pad_left=(1, 0), dilation=(1, 2))
    deep = ConvProblem(direction, 1, 4, 2, (5, 6, 7), 2, stride=(1, 2, 1), pad_left=1)
    for problem in (flat, deep):
        record = CONV.record_of(problem)
        assert record is not None and CONV.problem(record) == problem
    unserved = ConvProblem(direction, 2, 6, 9, (7, 8), (3, 2), pad_left=1, pad_right=0)
    line, none = ConvProblem(direction, 2, 6, 9, 7, 3), ConvProblem(direction, 0, 6, 9, (7, 8), 1)
    assert CONV.record_of(unserved) is CONV.record_of(line) is CONV.record_of(none) is CONV.record_of(object()) is None


def test_three_dimensions_and_work() -> None:
    record = CONV.read({"N": 2, "C": 3, "K": 4, "Di": 4, "Hi": 5, "Wi": 6, "Z": 2, "Y": 3, "X": 1, "stride_d": 2})
    problem = CONV.problem(record)
    assert (problem.x_shape, problem.w_shape, problem.y_shape) == ((2, 4, 5, 6, 3), (4, 2, 3, 1, 3), (2, 2, 3, 6, 4))
    assert CONV.flops(record) == 2 * 2 * 4 * 3 * (2 * 3 * 1) * (2 * 3 * 6)
    assert CONV.bytes_moved(record) == 4 * (2 * 4 * 5 * 6 * 3 + 4 * 2 * 3 * 3 + 2 * 2 * 3 * 6 * 4)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"n": 1}, "lacks c, k, hi, wi, y, x"),
        ({"n": 1, "c": 1, "k": 1, "hi": 1, "wi": 1, "y": 1, "x": 1, "m": 3}, r"unknown keys \['m'\]"),
        ({"n": 1, "c": 3, "k": 2, "g": 2, "hi": 1, "wi": 1, "y": 1, "x": 1}, "multiples of groups"),
        ({"n": 1, "c": 1, "k": 1, "hi": 1, "wi": 1, "y": 3, "x": 1}, "the filter reaches over 3 points"),
    ],
)
def test_an_illegal_record_says_what_is_wrong(record: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        CONV.read(record)
