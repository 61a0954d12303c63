from __future__ import annotations

import sys
from types import BuiltinFunctionType
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, Dispatcher, GemmProblem, GroupedGemmProblem
from kernelwright.dispatch.arrays import autograd, guards, trials
from kernelwright.dispatch.testdata import mocks
from kernelwright.dispatch.testdata.torch_stand_in import Tensor, Torch


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory: pytest.TempPathFactory) -> Dispatcher:
    mocks.native_library()
    return Dispatcher(mocks.write_library(tmp_path_factory.mktemp("library")))


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    made = Torch()
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.setattr(guards, "compiler_guard", lambda: None)
    return made


def tensor(*shape: int, neg: bool = False) -> Tensor:
    return Tensor(np.ones(shape, np.float32), neg=neg)


def test_negative_views_are_refused(dispatcher: Dispatcher, torch: Torch) -> None:
    a, b, out = tensor(3, 4), tensor(4, 5), tensor(3, 5)
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    for _ in range(2):  # checked in full, then recognised
        assert dispatcher.gemm(a, b, out=out) is plan(a, b, out=out) is out
    for call in (dispatcher.gemm, plan):
        with pytest.raises(ArrayError, match=r"a is a negative view, .*; pass a\.resolve_neg\(\)"):
            call(tensor(3, 4, neg=True), b, out=out)
        with pytest.raises(ArrayError, match="out is a negative view"):
            call(a, b, out=tensor(3, 5, neg=True))


def test_tensors_that_require_grad_need_grad_mode_off(dispatcher: Dispatcher, torch: Torch) -> None:
    a, b, out, weights = tensor(3, 4), tensor(4, 5), tensor(3, 5), tensor(4, 5)
    weights.requires_grad = True
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    for _ in range(2):
        for call in (dispatcher.gemm, plan):
            torch.grad = True
            call(a, b, out=out)
            with pytest.raises(ArrayError, match=r"b requires grad, .* pass b\.detach\(\), or call under torch\.no_gr"):
                call(a, weights, out=out)
            torch.grad = False
            for _ in range(2):  # recognised the second time, but only while nothing is recorded
                out.array[:] = 0
                call(a, weights, out=out)
                assert (out.array == 4).all()


def test_every_launch_is_a_new_version_of_its_results(dispatcher: Dispatcher, torch: Torch, tmp_path: Any) -> None:
    a, b, out = tensor(3, 4), tensor(4, 5), tensor(3, 5)
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    bound = plan.bind(a, b, out=out)
    calls: list[Any] = [lambda: dispatcher.gemm(a, b, out=out), lambda: plan(a, b, out=out), bound]
    for call in calls:
        for _ in range(3):
            before = out._version
            assert call() is out
            assert out._version == before + 1
    assert a._version == b._version == 0
    torch.grad = False
    before = out._version
    assert plan.bind(a, b, out=out)() is out and out._version == before  # waived
    plan(a, b, out=out)
    assert out._version == before + 1
    torch.grad = True
    groups = Dispatcher(mocks.write_library(tmp_path, "MOCK_VARIANTS"))
    grouped = groups.plan(GroupedGemmProblem([(3, 5, 4), (3, 5, 4)], layout="rrr"))
    outs = [tensor(3, 5), tensor(3, 5)]
    for turn in range(3):
        groups.grouped_gemm([a, a], [b, b], outs)
        grouped([a, a], [b, b], outs)
        assert [one._version for one in outs] == [2 * turn + 2] * 2


def test_numpy_results_need_no_notice(dispatcher: Dispatcher) -> None:
    a, b, out = (np.ones((4, 4), np.float32) for _ in range(3))
    plan = dispatcher.plan(GemmProblem(4, 4, 4, layout="rrr"))
    assert plan._binder.write_notice((a, b, None, out)) is None
    assert isinstance(plan.bind(a, b, out=out).__call__, BuiltinFunctionType)  # nothing stands around the launch


@pytest.fixture(params=["compiler's guard", "attributes"])
def real(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    torch = pytest.importorskip("torch")
    if request.param == "attributes":
        monkeypatch.setattr(guards, "compiler_guard", lambda: None)
    else:
        assert guards.compiler_guard() is not None
    return torch


def test_real_views(real: Any, dispatcher: Dispatcher) -> None:
    whole = real.randn(3, 4, dtype=real.complex64)
    negative, plain = whole.conj().imag, real.view_as_real(whole)[..., 1]
    assert negative.is_neg() and negative.stride() == plain.stride()
    wide, b, out = real.zeros(3, 8), real.randn(4, 5), real.empty(3, 5)
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    for call in (dispatcher.gemm, plan):
        for _ in range(2):
            call(wide[:, :4].contiguous(), b, out=out)
        with pytest.raises(ArrayError, match="negative view"):
            call(real._neg_view(real.randn(3, 4)), b, out=out)
        with pytest.raises(ArrayError, match="complex64"):
            call(whole.conj(), b, out=out)
    with pytest.raises(ArrayError, match="negative view"):
        dispatcher.gemm(negative, b)
    resolved = real._neg_view(real.ones(3, 4)).resolve_neg()
    real.testing.assert_close(dispatcher.gemm(resolved, b), resolved @ b)


def test_real_autograd(real: Any, dispatcher: Dispatcher) -> None:
    a, weights, out = real.randn(3, 4), real.nn.Parameter(real.randn(4, 5)), real.empty(3, 5)
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    bound = plan.bind(a, weights.detach(), out=out)
    calls: list[Any] = [lambda b: dispatcher.gemm(a, b, out=out), lambda b: plan(a, b, out=out), lambda b: bound()]
    for call in calls[:2]:
        for _ in range(3):
            with pytest.raises(ArrayError, match="b requires grad"):
                call(weights)
            with real.no_grad():
                real.testing.assert_close(call(weights), a @ weights)
    for call in calls:
        for _ in range(3):
            scale = real.ones(3, 5, requires_grad=True)
            loss = (scale * out).sum()  # saves out
            call(weights.detach())
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                loss.backward()


def test_real_subclasses_are_tensors(real: Any, dispatcher: Dispatcher) -> None:
    class Mine(real.Tensor):  # type: ignore[misc]
        pass

    a, b, out = real.randn(3, 4), real.randn(4, 5), real.empty(3, 5).as_subclass(Mine)
    before = out._version
    assert dispatcher.gemm(a, b, out=out) is out and out._version > before
    real.testing.assert_close(out.as_subclass(real.Tensor), a @ b)


def test_real_inference_mode(real: Any, dispatcher: Dispatcher, tmp_path: Any) -> None:
    a, b, tracked = real.randn(3, 4), real.randn(4, 5), real.zeros(3, 5)
    with real.inference_mode():
        autograd.version_counter.cache_clear()  # the first call of a process may be made there
        untracked = real.zeros(3, 5)
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    calls: list[Any] = [lambda out: dispatcher.gemm(a, b, out=out), lambda out: plan(a, b, out=out)]
    groups = Dispatcher(mocks.write_library(tmp_path, "MOCK_VARIANTS"))
    calls.append(lambda out: groups.grouped_gemm([a, a], [b, b], [out, real.zeros(3, 5)])[0])
    for call in calls:
        for inside in (True, False, True, False):
            for out in (tracked, untracked, tracked):
                before = tracked._version
                with real.inference_mode(inside):
                    assert call(out.zero_() if inside or out is tracked else out) is out
                assert tracked._version > before or out is untracked
                real.testing.assert_close(out.clone(), a @ b)


def test_guards_are_tried_in_no_mode(real: Any) -> None:
    if guards.compiler_guard() is not None:
        guards.compiler_guard.cache_clear()
        with real.inference_mode(), real.device("meta"):
            assert guards.compiler_guard() is not None


@pytest.mark.parametrize("broken", [lambda tensors: None, None])
def test_a_private_counter_that_has_changed_is_not_used(real: Any, monkeypatch: Any, broken: Any) -> None:
    if broken is None:
        monkeypatch.delattr(real._C, "_increment_version")
    else:
        monkeypatch.setattr(real._C, "_increment_version", broken)
    monkeypatch.setattr(real.autograd.graph, "increment_version", lambda tensor: tensor.add_(0))
    autograd.version_counter.cache_clear()
    with real.inference_mode():
        untracked = real.zeros(2)
    tracked = real.zeros(2)
    autograd.version_counter(real)([untracked, tracked])
    assert tracked._version == 1
    autograd.version_counter.cache_clear()


def test_real_trials_are_made_with_the_dispatcher(real: Any, dispatcher: Dispatcher) -> None:
    """Not in a first call, which may be forked in its midst while torch initialises what a trial uses."""
    made: list[Any] = [vars(trials)[name] for name in ("compiler_guard", "version_counter")]
    for trial in made:
        trial.cache_clear()
    Dispatcher(dispatcher.libraries)
    assert [trial.cache_info().currsize for trial in made] == [1, 1]
