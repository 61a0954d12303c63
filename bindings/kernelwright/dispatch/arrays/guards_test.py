from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, Dispatcher, GemmProblem, KernelLibrary, Plan
from kernelwright.dispatch.arrays import address, guards
from kernelwright.dispatch.arrays.view import Prepared
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    mocks.native_library()
    library = KernelLibrary.load(mocks.write_library(tmp_path_factory.mktemp("library")))
    return Dispatcher(library).plan(GemmProblem(3, 5, 4, layout="rrr"))


def f32(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def documented(*arrays: np.ndarray[Any, Any]) -> list[int]:
    return [array.ctypes.data for array in arrays]


@pytest.mark.parametrize("quick", [True, False])
def test_addresses_of_numpy_arrays(quick: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not quick:
        monkeypatch.setattr(guards, "data_offset", lambda: None)
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


def test_addresses_are_read_where_the_array_struct_holds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert address.data_offset() == object.__basicsize__  # where this fails, addresses are right but slow
    view = f32(4, 6)[1:, 2:]
    assert address.address_of(view) == address.public_address(view) == view.ctypes.data
    uncached = address.data_offset.__wrapped__
    monkeypatch.setattr(address, "public_address", lambda array: 4096)
    assert uncached() is None  # another layout than expected
    monkeypatch.undo()
    monkeypatch.setattr("platform.python_implementation", lambda: "PyPy")
    assert uncached() is None
    monkeypatch.setattr(address, "data_offset", lambda: None)
    assert address.address_of(view) == view.ctypes.data


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


def test_a_plan_refuses_shared_memory_in_every_call(plan: Plan) -> None:
    memory = f32(10, 10)
    a, b, out = f32(3, 4), f32(4, 5), np.empty((3, 5), np.float32)
    flat = memory.reshape(-1)
    for _ in range(3):
        plan(a, b, out=out)
        with pytest.raises(ArrayError, match="out shares memory with a"):
            plan(flat[:12].reshape(3, 4), b, out=flat[11:26].reshape(3, 5))
        with pytest.raises(ArrayError, match="out shares memory with b"):
            plan(a, flat[14:34].reshape(4, 5), out=flat[:15].reshape(3, 5))
        plan(flat[:12].reshape(3, 4), flat[12:32].reshape(4, 5), out=flat[32:47].reshape(3, 5))


def test_a_plan_refuses_an_overlapping_c_in_every_call(tmp_path: Any) -> None:
    dispatcher = Dispatcher(KernelLibrary.load(mocks.write_library(tmp_path)))
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr", beta=1))
    a, b, flat = f32(3, 4), f32(4, 5), f32(40)
    for _ in range(3):
        c = flat[:15].reshape(3, 5)
        expected = a @ b + c
        np.testing.assert_allclose(plan(a, b, c, c), expected, rtol=1e-5, atol=1e-5)
        with pytest.raises(ArrayError, match="out overlaps c"):
            plan(a, b, c, flat[5:20].reshape(3, 5))


def test_blocks_of_one_matrix_are_told_apart(tmp_path: Any) -> None:
    dispatcher = Dispatcher(KernelLibrary.load(mocks.write_library(tmp_path)))
    plan = dispatcher.plan(GemmProblem(3, 3, 3, layout="rrr", lda=9, ldb=9, ldc=9))
    wide = f32(3, 9)
    for _ in range(3):
        expected = wide[:, :3] @ wide[:, 3:6]
        np.testing.assert_allclose(plan(wide[:, :3], wide[:, 3:6], out=wide[:, 6:]), expected, rtol=1e-5, atol=1e-5)


def test_spans_reach_behind_the_last_element() -> None:
    problem = GemmProblem(3, 5, 4, dtype="fp16", layout="rcr", lda=10, ldb=4, ldc=5)
    assert problem.spans == ((2 * 10 + 4) * 2, 5 * 4 * 2, 3 * 5 * 2)
    assert GemmProblem(3, 5, 0).spans == (0, 0, 60)


def test_torch_tensors(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    ways = [guards.compiler_guard(), guards.attribute_guard]
    assert ways[0] is not None
    for way in ways:
        monkeypatch.setattr(guards, "compiler_guard", lambda way=way: way)
        a, b, out = torch.randn(3, 4), torch.randn(4, 5), torch.empty(3, 5)
        for _ in range(3):
            assert plan(a, b, out=out) is out
            torch.testing.assert_close(out, a @ b)
            a = torch.randn(3, 4)
        with pytest.raises(ArrayError, match="a is 4x3"):
            plan(torch.randn(4, 3), b, out=out)
        with pytest.raises(ArrayError, match="a has strides"):
            plan(torch.randn(4, 3).t(), b, out=out)
        with pytest.raises(ArrayError, match="fp16"):
            plan(a.half(), b, out=out)
        with pytest.raises(ArrayError, match="layout"):
            plan(a.to_sparse(), b, out=out)
        with pytest.raises(ArrayError, match="on meta"):
            plan(a.to("meta"), b, out=out)
        with pytest.raises(ArrayError, match="shares memory"):
            plan(a, b, out=b.view(-1)[2:17].view(3, 5))
        with pytest.raises(ArrayError, match="must be given"):
            plan(a, b)
