from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from kernelwright.dispatch import ArrayError, operand
from kernelwright.dispatch.operations.gemm.aliasing import overlaps
from kernelwright.dispatch.operations.gemm.from_arrays import read_operands
from kernelwright.dispatch.operations.gemm.layouts import layouts
from kernelwright.problems.gemm.problem import Epilogue


def f32(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.zeros(shape, np.float32)


def readings(a: Any, b: Any, c: Any = None, out: Any = None, beta: float = 0.0, layout: str | None = None) -> list[str]:
    problems = read_operands(a, b, c, out, beta=beta).readings(Epilogue(1.0, beta), layout)
    return [f"{p['layout']} {p['lda']} {p['ldb']} {p['ldc']}" for p in problems]


def test_views_become_layouts() -> None:
    assert readings(f32(4, 6), f32(6, 5)) == ["rrr 6 5 5"]
    assert readings(f32(6, 4).T, f32(5, 6).T) == ["ccr 4 6 5"]
    assert readings(f32(9, 10)[2:6, 1:7], f32(6, 5)) == ["rrr 10 5 5"]
    assert readings(f32(4, 6), f32(6, 5), out=f32(5, 4).T) == ["rrc 6 5 4"]
    assert readings(f32(4, 6), f32(6, 5), layout="rrc") == ["rrc 6 5 4"]
    c = f32(5, 4).T
    assert readings(f32(4, 6), f32(6, 5), c=c, beta=1.0) == ["rrc 6 5 4"]
    assert readings(f32(4, 6), f32(6, 5), c=c, out=c, beta=1.0) == ["rrc 6 5 4"]


def test_vectors_fit_both_layouts() -> None:
    assert readings(f32(4, 6), f32(6, 1)) == ["rrr 6 1 1", "rcr 6 6 1"]
    assert readings(f32(1, 6), f32(6, 5)) == ["rrr 6 5 5", "crr 1 5 5"]
    assert readings(f32(1, 6), f32(6, 5), layout="crr") == ["crr 1 5 5"]
    assert readings(f32(8, 6)[::2][:1], f32(6, 5)) == ["rrr 6 5 5", "crr 1 5 5"]
    assert readings(f32(4, 8)[:, :1], f32(1, 5)) == ["rrr 8 5 5", "rcr 8 1 5"]
    assert readings(f32(0, 6), f32(6, 5)) == ["rrr 6 5 5", "crr 1 5 5"]
    assert readings(f32(4, 0), f32(0, 5), layout="rrr") == ["rrr 1 5 5"]
    assert readings(f32(0, 4, 12)[:, :, ::2], f32(6, 5))[0] == "rrr 6 5 5"  # no matrix, whose strides mean nothing


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((f32(4, 6), f32(5, 6)), ["k is 6 and 5", "4x6", "5x6"]),
        ((f32(4, 6), f32(6, 5), None, f32(4, 6)), ["out is 4x6", "4x5"]),
        ((f32(4, 6), f32(6, 5), f32(4, 5), np.zeros((4, 5), np.float16), 1.0), ["c is fp32 and out is fp16"]),
        ((f32(4, 6), f32(6, 5), None, None, 1.0), ["beta is 1.0 but c is not given"]),
        ((f32(4, 6), f32(6, 5), f32(4, 5)), ["c is given but beta is 0"]),
        ((f32(4, 6), f32(6, 5), f32(4, 5), f32(5, 4).T, 1.0), ["c has strides (5, 1) and out (1, 4)"]),
        ((f32(4, 6)[::-1], f32(6, 5)), ["a of shape (4, 6)", "negative", "copy"]),
        ((f32(4, 12)[:, ::2], f32(6, 5)), ["one of them must be 1"]),
        ((as_strided(f32(6), (4, 6), (0, 4)), f32(6, 5)), ["overlap"]),
        ((as_strided(f32(40), (4, 6), (8, 4)), f32(6, 5)), ["overlap"]),
        ((as_strided(f32(40), (6, 6), (20, 4)), f32(6, 5)), ["overlap"]),
        ((np.broadcast_to(np.float32(1), (4, 6)), f32(6, 5)), ["overlap"]),
        ((f32(4, 6), f32(6, 5), None, None, 0.0, "crr"), ["not column-major as layout says"]),
        ((f32(4, 6), f32(6, 5), None, None, 0.0, "rr"), ["layout is 'rr'"]),
        ((f32(4, 6), f32(6, 5), None, None, 0.0, 3), ["layout is 3"]),
        ((None, f32(6, 5)), ["a is None", "an array"]),
        ((f32(4, 6), None), ["b is None", "an array"]),
    ],
)
def test_arrays_that_do_not_fit_are_refused(arguments: tuple[Any, ...], words: list[str]) -> None:
    with pytest.raises(ArrayError) as error:
        readings(*arguments)
    for word in words:
        assert word in str(error.value)


def test_result_must_not_share_memory_with_operands() -> None:
    big = f32(5, 4)
    square = big[:4]
    with pytest.raises(ArrayError, match="out shares memory with a"):
        read_operands(square, f32(4, 4), None, square, beta=0.0)
    with pytest.raises(ArrayError, match="out shares memory with b"):
        read_operands(f32(4, 4), square.T, None, square, beta=0.0)
    with pytest.raises(ArrayError, match="out overlaps c"):
        read_operands(f32(4, 4), f32(4, 4), big[1:], square, beta=1.0)
    readonly = f32(4, 4)
    readonly.flags.writeable = False
    with pytest.raises(ArrayError, match="cannot be written"):
        read_operands(f32(4, 4), f32(4, 4), None, readonly, beta=0.0)


def test_blocks_of_one_matrix_do_not_overlap() -> None:
    big = f32(8, 12)

    def shared(left: Any, right: Any) -> bool:
        return overlaps(operand(left), operand(right))

    assert not shared(big[:, :6], big[:, 6:])
    assert shared(big[:, :7], big[:, 6:])
    assert not shared(big[:4], big[4:])
    assert shared(big[:5], big[4:])
    assert not shared(big[:4, 6:], big[2:, :6])
    assert shared(big[:, :6], big[::2, 6:])  # other distances between lines are not looked into
    assert not shared(big[:0], big)


def test_layouts_agree_with_brute_force() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        shape = tuple(int(size) for size in rng.integers(1, 4, 2))
        strides = tuple(int(stride) for stride in rng.integers(0, 6, 2))
        view = operand(as_strided(f32(64), shape, tuple(4 * stride for stride in strides)))
        addresses = [[i * strides[0] + j * strides[1] for j in range(shape[1])] for i in range(shape[0])]
        try:
            legal = layouts("a", view, None)
        except ArrayError:
            legal = []
        for letter, leading in legal:
            for i in range(shape[0]):
                for j in range(shape[1]):
                    assert addresses[i][j] == (i * leading + j if letter == "r" else j * leading + i)
        distinct = len({x for line in addresses for x in line}) == shape[0] * shape[1]
        if not legal and distinct and min(strides) >= 0:
            # A legal matrix is only refused when neither direction is contiguous or lines interleave.
            assert strides[0] < shape[1] or strides[1] != 1 or shape[1] == 1


def test_a_batch_may_have_any_number_of_dimensions() -> None:
    operands = read_operands(f32(2, 3, 4, 6), f32(2, 3, 6, 5), None, None, beta=0.0)
    assert (operands.batch, operands.batches, operands.shape) == (6, (2, 3), (2, 3, 4, 5))
    (fields,) = operands.readings(Epilogue(), None)
    assert [fields[name] for name in ("batch", "stride_a", "stride_b", "stride_c")] == [6, 24, 30, 20]
    shared = read_operands(f32(2, 1, 3, 4, 6), f32(6, 5), None, None, beta=0.0)
    assert shared.shape == (2, 1, 3, 4, 5)
    of_one = read_operands(f32(2, 3, 4, 6), f32(1, 1, 6, 5), None, None, beta=0.0)
    assert of_one.shape == (2, 3, 4, 5) and of_one.readings(Epilogue(), None)[0]["stride_b"] == 0
    assert read_operands(f32(2, 0, 4, 6), f32(6, 5), None, None, beta=0.0).shape == (2, 0, 4, 5)
    assert read_operands(f32(1, 1, 4, 6), f32(6, 5), None, None, beta=0.0).shape == (1, 1, 4, 5)
    every_second = f32(4, 6, 4, 6)[:, ::2]
    assert operand(every_second).batch_stride == 48 and operand(every_second).batch == 12
    with pytest.raises(ArrayError, match=r"batches are a of \(2, 3\), b of \(3, 2\); they must be equal"):
        read_operands(f32(2, 3, 4, 6), f32(3, 2, 6, 5), None, None, beta=0.0)
    with pytest.raises(ArrayError, match="one distance between neighbours: pass a copy"):
        read_operands(f32(2, 4, 4, 6)[:, :3], f32(6, 5), None, None, beta=0.0)
