"""What callers may pass as strides, padding and sizes, told before a kernel is looked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, Dispatcher, NoKernelError, ProblemError
from kernelwright.dispatch.operations.convolution.calls import ConvOptions, _frozen
from kernelwright.dispatch.testdata import mocks

X, W = np.zeros((2, 6, 6, 4), np.float32), np.zeros((8, 3, 3, 4), np.float32)


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory: pytest.TempPathFactory) -> Dispatcher:
    mocks.native_library()
    return Dispatcher(mocks.write_library(Path(tmp_path_factory.mktemp("mock"))))


NO_INTEGERS = [
    1.5,
    None,
    True,
    np.True_,
    "1",
    "same",
    (1.0, 1),
    (1, 2, 3),
    (),
    [True, 1],
    {"a": 1},
    object(),
    2**70,
    -1,
]


@pytest.mark.parametrize("field", ["stride", "dilation", "padding", "groups"])
@pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
def test_options_are_integers(dispatcher: Dispatcher, field: str, value: Any) -> None:
    with pytest.raises((ArrayError, ProblemError), match=rf"{field}|pad_left.*allowed: "):
        dispatcher.conv_forward(X, W, **{field: value})


@pytest.mark.parametrize("value", [1.5, None, (1, 2, 3), -1, "66", (6.0, 6)], ids=repr)
def test_sizes_are_integers(dispatcher: Dispatcher, value: Any) -> None:
    with pytest.raises((ArrayError, ProblemError), match=r"size is .*; allowed: "):
        dispatcher.conv_backward_data(np.zeros((2, 4, 4, 8), np.float32), W, value)
    with pytest.raises((ArrayError, ProblemError), match=r"filter is .*; allowed: "):
        dispatcher.conv_backward_weight(X, X, value)


@pytest.mark.parametrize("options", [
    {"stride": 1}, {"stride": np.int64(1)}, {"padding": [(0, 1), 1]}, {"padding": (1, (1, 0))}, {"dilation": [1, 2]},
], ids=repr)  # fmt: skip
def test_integers_of_any_kind_pose_problems(dispatcher: Dispatcher, options: dict[str, Any]) -> None:
    with pytest.raises(NoKernelError):  # the mocks have none
        dispatcher.conv_forward(X, W, **options)


def test_a_call_that_was_checked_vouches_for_no_other_type() -> None:
    first = _frozen(ConvOptions("forward", stride=1, groups=1))
    others: list[Any] = [True, 1.0, np.int64(1), (1,)]
    for stride in others:
        assert _frozen(ConvOptions("forward", stride=stride, groups=1)) != first
    assert _frozen(ConvOptions("forward", stride=[1, 2])) == _frozen(ConvOptions("forward", stride=(1, 2)))
