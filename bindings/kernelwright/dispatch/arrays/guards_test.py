from __future__ import annotations

import sys
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelwright.dispatch.arrays import guards
from kernelwright.dispatch.arrays.view import Prepared
from kernelwright.dispatch.core import native
from kernelwright.dispatch.testdata import mocks


def f32(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def documented(*arrays: np.ndarray[Any, Any]) -> list[int]:
    return [array.ctypes.data for array in arrays]


@pytest.fixture(autouse=True, scope="module")
def library() -> None:
    mocks.native_library()


def test_addresses_of_numpy_arrays() -> None:
    for dtype in (np.float32, np.int8, ml_dtypes.bfloat16):
        a, b, c, out = (np.zeros((4, 6), dtype)[i:, i:] for i in range(4))
        guard = guards.guard_of((a, b, None, out))
        assert guard is not None
        assert guard.addresses((a, b, None, out)) == [*documented(a, b), None, *documented(out)]
        assert guard.addresses((a, b, c, out)) is None
        guard = guards.guard_of((a, b, c, out))
        assert guard is not None and guard.addresses((a, b, None, out)) is None
        assert guard.addresses((a, b, c, out)) == documented(a, b, c, out)
        guard = guards.guard_of((a, b, None, c, c, out))
        assert guard is not None and guard.addresses((a, b, None, c, out)) is None
        assert list(guard.addresses((a, b, None, c, c, out)) or ())[3:5] == documented(c, c)
        assert guard.addresses((a, b, None, c, b, out)) is None


def test_the_extension_reads_addresses_and_flags() -> None:
    extension = native.extension()
    view, frozen = f32(4, 6)[1:, 2:], f32(3)
    shifted = np.zeros(65, np.uint8)[1:].view(np.float32)
    frozen.flags.writeable = False
    assert extension.array_address(view) == view.ctypes.data
    assert extension.array_address(shifted) == shifted.ctypes.data
    assert extension.array_addresses((), 0) == []
    assert extension.array_addresses((view, None, frozen), 0) == [view.ctypes.data, None, frozen.ctypes.data]
    assert extension.array_addresses((view, None, frozen), 1) is None
    assert extension.array_addresses((frozen, view), 1) == [frozen.ctypes.data, view.ctypes.data]
    assert extension.array_addresses((view, shifted), 0) is None
    before = sys.getrefcount(view), sys.getrefcount(None)
    for _ in range(50):
        extension.array_addresses((view, None, frozen), 1)
    assert sys.getrefcount(view) == before[0] and abs(sys.getrefcount(None) - before[1]) < 40
    with pytest.raises(AttributeError, match="__array_struct__"):
        extension.array_addresses((view, 5), 0)
    with pytest.raises(TypeError, match="array_addresses takes a tuple"):
        extension.array_addresses((view,))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="array_address takes an array"):
        extension.array_address()  # type: ignore[call-arg]
    with pytest.raises(SystemError):
        extension.array_addresses([view], 0)  # type: ignore[arg-type]


def test_arrays_of_other_metadata_are_checked() -> None:
    a, b, c, out = f32(4, 4), f32(4, 4), f32(4, 4), f32(4, 4)
    guard = guards.guard_of((a, b, c, out))
    assert guard is not None
    frozen, shifted = a.copy(), np.zeros(65, np.uint8)[1:].view(np.float32).reshape(4, 4)
    frozen.flags.writeable = False
    subclass = a.view(np.matrix)
    others = [a.T, a[:3], f32(4, 8)[:, :4], a.astype(np.float64), a.astype(">f4"), shifted, subclass, None, 5]
    for position in range(4):
        for other in [*others, frozen] if position == 3 else others:
            operands: list[Any] = [a, b, c, out]
            operands[position] = other
            assert guard.addresses(tuple(operands)) is None
            # gemm() compares keys, the guard then only what no key tells
            same_key = guards.metadata_key(tuple(operands)) == guards.metadata_key((a, b, c, out))
            assert not same_key or guard.addresses(tuple(operands), keyed=True) is None
    assert guard.addresses((frozen, b, c, out)) is not None
    assert guard.addresses((a, b, c, out), keyed=True) == documented(a, b, c, out)
    assert guards.guard_of((a, b, None, [[0.0]])) is None and guards.metadata_key((a, b, [[0.0]])) is None


class Packed(Prepared):
    def __init__(self, data: Any, kind: str) -> None:
        self.data, self.kind = data, kind

    @property
    def key(self) -> tuple[object, ...]:
        return (self.kind,)


def test_prepared_operands_are_compared_by_key_and_data() -> None:
    a, b, out = f32(4, 4), f32(4, 4), f32(4, 4)
    guard = guards.guard_of((a, Packed(b, "x"), out))
    assert guard is not None
    assert guard.addresses((a, Packed(out, "x"), out)) == documented(a, out, out)
    for other in (b, Packed(b, "y"), Packed(b.T, "x"), None):
        assert guard.addresses((a, other, out)) is None
    keys = [guards.metadata_key((a, one, out)) for one in (b, Packed(b, "x"), Packed(b, "y"), Packed(b[:2], "x"))]
    assert len({*keys}) == 4 and keys[1] == guards.metadata_key((a, Packed(out, "x"), out))
