from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, Dispatcher, GemmProblem, KernelLibrary, looks
from kernelwright.dispatch.arrays import header_bytes
from kernelwright.dispatch.plan import Plan
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
        monkeypatch.setattr(looks, "header_bytes", lambda: None)
    for dtype in (np.float32, np.int8, ml_dtypes.bfloat16):
        a, b, c, out = (np.zeros((4, 6), dtype)[i:, i:] for i in range(4))
        look = looks.look_of(a, b, None, out)
        assert look is not None
        assert look.addresses(a, b, None, out) == (*documented(a, b), None, *documented(out), ())
        assert look.addresses(a, b, c, out) is None
        look = looks.look_of(a, b, c, out)
        assert look is not None and look.addresses(a, b, None, out) is None
        assert list(look.addresses(a, b, c, out) or ()) == [*documented(a, b, c, out), ()]
        look = looks.look_of(a, b, None, out, [c, c])
        assert look is not None and look.addresses(a, b, None, out, [c]) is None
        assert list(look.addresses(a, b, None, out, [c, c]) or ())[4] == tuple(documented(c, c))
        assert look.addresses(a, b, None, out, [c, b]) is None


def test_arrays_are_read_where_their_header_says() -> None:
    assert header_bytes() == object.__basicsize__  # slow, but still right, where this fails


def test_whatever_differs_is_looked_at_closely() -> None:
    a, b, c, out = f32(4, 4), f32(4, 4), f32(4, 4), f32(4, 4)
    look = looks.look_of(a, b, c, out)
    assert look is not None
    frozen, shifted = a.copy(), np.zeros(65, np.uint8)[1:].view(np.float32).reshape(4, 4)
    frozen.flags.writeable = False
    subclass = a.view(np.matrix)
    others = [a.T, a[:3], f32(4, 8)[:, :4], a.astype(np.float64), a.astype(">f4"), shifted, subclass, None, 5]
    for position in range(4):
        for other in [*others, frozen] if position == 3 else others:
            arrays: list[Any] = [a, b, c, out]
            arrays[position] = other
            assert look.addresses(*arrays) is None
            # gemm() compares the key instead of the look, except for what is not in the key
            same_key = looks.call_key(*arrays) == looks.call_key(a, b, c, out)
            first, second, third, result = arrays
            assert not same_key or look.addresses(first, second, third, result, known=True) is None
    assert look.addresses(frozen, b, c, out) is not None
    assert list(look.addresses(a, b, c, out, known=True) or ()) == [*documented(a, b, c, out), ()]
    assert looks.look_of(a, b, None, [[0.0]]) is None


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
    ways = [looks.guards(), looks.attribute_guard]
    assert ways[0] is not None
    for way in ways:
        monkeypatch.setattr(looks, "guards", lambda way=way: way)
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
