from __future__ import annotations

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, Operand, operand
from kernelwright.dispatch.operations.gemm.operand import allocator, d_operand
from kernelwright.dispatch.testdata import mocks


def test_two_dimensions_are_a_matrix_and_three_a_batch() -> None:
    array = np.zeros((2, 3, 4), np.float32)
    one, batch = operand(array[0].T), operand(array)
    assert (one.shape, one.strides, one.batch, one.batch_stride) == ((4, 3), (1, 4), None, 0)
    assert (batch.shape, batch.strides, batch.batch, batch.batch_stride) == ((3, 4), (4, 1), 2, 12)
    assert one.pointer == array.ctypes.data and one.owner.base is array and one.shown_shape == "4x3"
    for shape in ((), (3,)):
        with pytest.raises(ArrayError, match=r"b has shape .*; allowed: two dimensions, or more for a batch"):
            operand(np.zeros(shape, np.float32), "b")


def test_one_dimension_is_a_row_for_all() -> None:
    bias = np.zeros((7, 2), np.float32)[:, 0]
    for array in (bias, mocks.Foreign(np.zeros(7, np.float32))):
        row = d_operand(array, "ds[0]")
        assert row.shape == (1, 7) and row.strides[0] == 0
    assert d_operand(bias, "ds[0]").strides == (0, 2)
    assert d_operand(np.zeros((3, 7), np.float32), "ds[0]").shape == (3, 7)


def test_results_are_allocated_like_their_operands() -> None:
    a = np.zeros((2, 2), ml_dtypes.bfloat16)
    assert allocator(operand(a), (2, 3), "bf16", row_major=True, owner=a)().dtype == ml_dtypes.bfloat16
    for shape in ((2, 3), (4, 2, 3)):
        made = allocator(operand(a), shape, "fp32", row_major=False, owner=a)()
        assert made.shape == shape and operand(made).strides == (1, 2)
    foreign = Operand(1, (2, 2), (2, 1), "fp16", False, "cuda:0", "jax", None)
    with pytest.raises(ArrayError, match="pass out="):
        allocator(foreign, (2, 2), "fp16", row_major=True)


def test_column_major_results_of_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    class Made:
        def __init__(self, shape: tuple[int, ...], *_: object, **__: object) -> None:
            self.shape = shape

        def t(self) -> tuple[str, tuple[int, ...]]:
            return "t", self.shape

        def transpose(self, *axes: int) -> tuple[str, tuple[int, ...], tuple[int, ...]]:
            return "transpose", self.shape, axes

        def untyped_storage(self) -> SimpleNamespace:
            return SimpleNamespace(resize_=lambda nbytes: None)

        T = property(lambda self: ("T", self.shape))

    for family, expected in (("cupy", ("T", (3, 2))), ("torch", ("t", (3, 2)))):
        module = ModuleType(family)
        module.__dict__.update(empty=Made, empty_like=lambda like: Made(like.shape), float16="float16")
        monkeypatch.setitem(sys.modules, family, module)
        like = Operand(1, (2, 2), (2, 1), "fp16", False, "cuda:0", family, None)
        owner = SimpleNamespace(device=nullcontext())
        assert allocator(like, (2, 3), "fp16", row_major=False, owner=owner)() == expected
        assert allocator(like, (2, 3), "fp16", row_major=True, owner=owner)().shape == (2, 3)
    assert allocator(like, (4, 2, 3), "fp16", row_major=False, owner=owner)() == ("transpose", (4, 3, 2), (-1, -2))
