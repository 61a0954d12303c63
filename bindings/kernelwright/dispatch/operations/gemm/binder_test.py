from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, Dispatcher, GemmProblem, GroupedGemmProblem, Plan
from kernelwright.dispatch.arrays import guards
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    mocks.native_library()
    return Dispatcher(mocks.write_library(tmp_path_factory.mktemp("library"))).plan(GemmProblem(3, 5, 4, layout="rrr"))


def f32(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


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
    mocks.native_library()
    dispatcher = Dispatcher(mocks.write_library(tmp_path))
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr", beta=1))
    a, b, flat = f32(3, 4), f32(4, 5), f32(40)
    for _ in range(3):
        c = flat[:15].reshape(3, 5)
        expected = a @ b + c
        np.testing.assert_allclose(plan(a, b, c, c), expected, rtol=1e-5, atol=1e-5)
        with pytest.raises(ArrayError, match="out overlaps c"):
            plan(a, b, c, flat[5:20].reshape(3, 5))


def test_blocks_of_one_matrix_are_told_apart(tmp_path: Any) -> None:
    mocks.native_library()
    dispatcher = Dispatcher(mocks.write_library(tmp_path))
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


def test_groups_refuse_shared_memory_in_every_call(tmp_path: Any) -> None:
    mocks.native_library()
    dispatcher = Dispatcher(mocks.write_library(tmp_path, "MOCK_VARIANTS"))
    plan = dispatcher.plan(GroupedGemmProblem([(3, 5, 4), (2, 5, 4)], layout="rrr", beta=1))
    a, b, flat = [f32(3, 4), f32(2, 4)], [f32(4, 5)] * 2, np.zeros(100, np.float32)

    def cut(*begins: int) -> list[Any]:
        return [flat[begin : begin + 5 * m].reshape(m, 5) for begin, m in zip(begins, (3, 2), strict=True)]

    calls: dict[str, Callable[..., Any]] = {
        "plan": plan,
        "grouped_gemm": lambda *lists: dispatcher.grouped_gemm(*lists, beta=1.0),
    }
    for call in calls.values():
        for _ in range(3):
            flat[:] = 7
            for outs, cs in ((cut(0, 20), cut(40, 60)), (cut(70, 30), cut(70, 30))):
                expected = [x @ y + c for x, y, c in zip(a, b, cs, strict=True)]
                call(a, b, outs, cs)
                for actual, wanted in zip(outs, expected, strict=True):
                    np.testing.assert_allclose(actual, wanted, rtol=1e-5)
            for outs, cs, message in (
                (cut(0, 10), cut(40, 60), r"out\[1\] shares memory with out\[0\]"),
                (cut(0, 20), cut(5, 60), r"shares memory with|overlaps c"),
                (cut(0, 20), cut(20, 0), r"shares memory with"),
            ):
                with pytest.raises(ArrayError, match=message):
                    call(a, b, outs, cs)
            with pytest.raises(ArrayError, match=r"shares memory with b"):
                call(a, [b[0], flat[28:48].reshape(4, 5)], cut(0, 20), cut(50, 70))


def test_repeated_grouped_calls_are_not_checked_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    mocks.native_library()
    dispatcher = Dispatcher(mocks.write_library(tmp_path, "MOCK_VARIANTS"))
    a, b = [f32(3, 4), f32(2, 4)], [f32(4, 5), f32(4, 5)]
    outs = [np.empty((m, 5), np.float32) for m in (3, 2)]
    dispatcher.grouped_gemm(a, b, outs)

    def checked(*_: Any, **__: Any) -> None:
        raise AssertionError("checked again")

    with monkeypatch.context() as patched:
        patched.setattr("kernelwright.dispatch.operations.gemm.grouped_calls.read_operands", checked)
        others = [np.empty((m, 5), np.float32) for m in (3, 2)]
        assert dispatcher.grouped_gemm([2 * x for x in a], b, others)[0] is others[0]
        np.testing.assert_allclose(others[1], 2 * (a[1] @ b[1]), rtol=1e-5)
        with pytest.raises(AssertionError):
            dispatcher.grouped_gemm(a[::-1], b, outs)
