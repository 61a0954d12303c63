"""Convolution problems: what follows from their fields, what is refused, and the C struct."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.dispatch import ConvProblem, ProblemError
from kernelwright.dispatch.core import native
from kernelwright.dispatch.testdata import mocks
from kernelwright.problems.convolution.description import PROBLEM
from kernelwright.problems.structs import values


def problem(**fields: Any) -> ConvProblem:
    given: dict[str, Any] = {"direction": "forward", "n": 2, "c": 8, "k": 12, "size": (9, 10), "filter": 3}
    return ConvProblem(**{**given, **fields})


def test_shapes_and_flops_follow() -> None:
    p = problem(groups=4, stride=(2, 1), pad_left=1, pad_right=(0, 2), dilation=(1, 2))
    assert p.layout == "nhwgc" and p.out_size == (4, 9)
    assert (p.x_shape, p.w_shape, p.y_shape) == ((2, 9, 10, 8), (12, 3, 3, 2), (2, 4, 9, 12))
    assert p.flops == 2 * 2 * 12 * 4 * 9 * 2 * 9
    assert p.bytes_moved == 4 * (2 * 9 * 10 * 8 + 12 * 9 * 2 + 2 * 4 * 9 * 12)
    assert p.stride_x == (720, 1, 80, 8) and p.stride_y == (432, 1, 108, 12)
    assert p.span("x") == 4 * 1440 and p.span("y") == 4 * 864 and p.span("w") == 4 * 216


def test_layouts_follow_from_the_dimensions() -> None:
    assert problem(size=9).layout == "nwgc" and problem(size=9).x_shape == (2, 9, 8)
    assert problem(size=(3, 4, 5)).layout == "ndhwgc"
    planes = problem(layout="ngchw", c=12, groups=12)
    assert planes.x_shape == (2, 12, 9, 10) and planes.w_shape == (12, 1, 3, 3)
    assert planes.stride_x == (1080, 90, 10, 1)


def test_problems_that_mean_the_same_are_equal() -> None:
    assert problem(stride=1) == problem(stride=(1, 1)) and hash(problem(stride=1)) == hash(problem(stride=(1, 1)))
    one = problem(n=1, stride_x=(7, 1, 80, 8))  # the stride of one image means nothing
    assert one == problem(n=1) and problem(pad_left=1) == problem(pad_left=1, pad_right=1)
    assert problem(pad_left=1) != problem(pad_left=1, pad_right=0)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"direction": "sideways"}, "direction is 'sideways'; allowed: forward, backward_data, backward_weight"),
        ({"dtype": "fp8"}, "dtype is 'fp8'; allowed: fp32"),
        ({"size": (1, 2, 3, 4)}, "one to three extents"),
        ({"filter": (3, 3, 3)}, "allowed: 2 numbers, one for each dimension"),
        ({"filter": 0}, "filter is 0; allowed: 1 or more"),
        ({"stride": 1.5}, "stride is 1.5; allowed: an integer"),
        ({"pad_left": -1}, "pad_left is -1; allowed: 0 or more"),
        ({"groups": 3}, "c is 8; allowed: multiples of groups = 3"),
        ({"n": -1}, "n is -1; allowed: 0 or more"),
        ({"layout": "nchw"}, r"layout is 'nchw' \(did you mean 'ngchw'\?\); allowed: nwgc"),
        ({"layout": "nwgc"}, "size has 2 extents; allowed: nhwgc"),
        ({"dilation": 5}, "reaches over 11 points along dimension 0, more than size 9"),
        ({"split_k": 2}, "split_k is 2; allowed for forward: 1"),
        ({"direction": "backward_weight", "split_k": 2**32 + 4}, "split_k is 4294967300; allowed: at most 4294967295"),
        ({"direction": "backward_data", "bias": True}, "allowed for backward_data: none"),
        ({"activation": "mish"}, "activation is 'mish'; allowed: none"),
        ({"alpha": "1"}, "allowed: a real number"),
        ({"stride_x": (720, 2, 80, 8)}, "channels side by side, stride 1"),
        ({"stride_x": (720, 1, 80)}, "allowed: 4 strides"),
        ({"stride_y": (672, 1, 95, 12)}, "results would overlap; allowed: 96 or more"),
        ({"stride_y": (672, 1, 96, 2**60)}, "span at most"),
        ({"c": 2**40, "k": 2**40}, "allowed"),
    ],
)
def test_what_is_wrong_is_said(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        problem(**fields)


def test_gradients_may_read_what_repeats() -> None:
    """Only what is written must have elements of its own: dy may be broadcast."""
    assert problem(direction="backward_data", stride_y=(0, 1, 0, 12)).stride_y == (0, 1, 0, 12)


@pytest.mark.parametrize(
    "fields",
    [
        {"groups": 4, "bias": True, "residual": True, "activation": "gelu", "beta": 0.25, "dtype": "bf16"},
        {"direction": "backward_weight", "size": (5, 6, 7), "pad_right": (0, 1, 2), "dilation": 2},
        {"layout": "ngchw", "stride": (1, 2), "n": 0},
    ],
)
def test_the_dispatcher_shows_every_field(fields: dict[str, Any]) -> None:
    """JSON of problems has the C names of all members that callers set, words in place of numbers."""
    mocks.native_library()
    library, handle, struct = native.library(), ctypes.c_void_p(), problem(**fields).native()
    native.check(library.kw_dispatcher_create(None, native.byref(handle)))
    text = ctypes.create_string_buffer(1 << 14)
    library.kw_dispatcher_explain(handle, native.byref(struct), text, ctypes.sizeof(text), None)
    library.kw_dispatcher_destroy(handle)
    shown = json.loads(text.value)["problem"]
    held = {name: list(one) if isinstance(one, tuple) else one for name, one in values(struct, PROBLEM).items()}
    assert shown.pop("op") == f"conv {fields.get('direction', 'forward').replace('_', ' ')}"
    assert held.pop("leaves_slices") == 0 and shown == held


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    dims = draw(st.integers(1, 3))
    along = st.lists(st.integers(0, 9), min_size=dims, max_size=dims)
    groups = draw(st.integers(0, 4))
    return {
        "direction": draw(st.sampled_from(["forward", "backward_data", "backward_weight"])),
        "n": draw(st.integers(-1, 3)), "c": groups * draw(st.integers(0, 3)), "k": groups * draw(st.integers(0, 3)),
        "groups": groups, "size": draw(along), "filter": draw(along),
        "stride": draw(along), "dilation": draw(along), "pad_left": draw(along), "pad_right": draw(along),
    }  # fmt: skip


@settings(max_examples=400, deadline=None, derandomize=True)
@given(problems())
def test_python_and_the_dispatcher_agree(fields: dict[str, Any]) -> None:
    """What Python accepts the C library accepts, with the same numbers; and the struct is read back as it was."""
    mocks.native_library()
    try:
        p = ConvProblem(**fields)
    except ProblemError as error:
        assert "allowed" in str(error)
        return
    struct = p.native()
    assert native.library().kw_problem_validate(native.byref(struct)) == 0
    assert ConvProblem.from_native(ctypes.addressof(struct)) == p
    padded = [s + a + b for s, a, b in zip(p.sizes, p.pad_left, p.pad_right, strict=True)]  # type: ignore[arg-type]
    for out, size, points, stride, dilation in zip(p.out_size, padded, p.filter, p.stride, p.dilation, strict=True):  # type: ignore[arg-type]
        assert out == len(np.arange(size)[: size - dilation * (points - 1) : stride])
