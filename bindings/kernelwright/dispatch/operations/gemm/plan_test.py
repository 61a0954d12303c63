from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import (
    ArrayError,
    Dispatcher,
    GemmProblem,
    KernelLibrary,
    LaunchError,
)
from kernelwright.dispatch.core.simulated import Region
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    mocks.native_library()
    return KernelLibrary.load(mocks.write_library(tmp_path_factory.mktemp("library")))


@pytest.fixture(scope="module")
def dispatcher(library: KernelLibrary) -> Dispatcher:
    return Dispatcher([library])


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_plans_check_what_they_are_called_with(dispatcher: Dispatcher) -> None:
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    assert plan is dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    assert plan.workspace_bytes == 4096 and plan.kernel.name == "gemm_fp32_rrr_32x32x32"
    assert repr(plan) == "<Plan gemm fp32 rrr 3x5x4 with gemm_fp32_rrr_32x32x32>"
    a, b, out = random(3, 4), random(4, 5), np.empty((3, 5), np.float32)
    for _ in range(3):  # checked once, then remembered
        assert plan(a, b, out=out) is out
        np.testing.assert_allclose(out, a @ b, rtol=1e-5)
    with pytest.raises(ArrayError, match=r"a is 4x3 fp32; allowed for this plan: 3x4 fp32"):
        plan(random(4, 3), b, out=out)
    with pytest.raises(ArrayError, match=r"a has strides .* row-major, leading dimension 4"):
        plan(random(4, 3).T, b, out=out)
    with pytest.raises(ArrayError, match="must be given"):
        plan(a, b)
    frozen = out.copy()
    frozen.flags.writeable = False
    with pytest.raises(ArrayError, match="cannot be written"):
        plan(a, b, out=frozen)
    a.shape = (4, 3)  # same object and address, other matrix
    with pytest.raises(ArrayError, match="a is 4x3"):
        plan(a, b, out=out)


def test_plans_take_addresses(dispatcher: Dispatcher) -> None:
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr", beta=1))
    a, b, c, out = random(3, 4), random(4, 5), random(3, 5), np.empty((3, 5), np.float32)
    assert plan(a.ctypes.data, b.ctypes.data, c.ctypes.data, out.ctypes.data) == out.ctypes.data
    np.testing.assert_allclose(out, a @ b + c, rtol=1e-5, atol=1e-6)
    scratch = np.zeros(8192, np.uint8)
    aligned = -(-scratch.ctypes.data // 256) * 256
    plan(a, b, c, out, workspace=aligned)
    assert (scratch == 0x5A).sum() == 4096
    with pytest.raises(ArrayError, match="aligned"):
        plan(a, b, c, out, workspace=aligned + 8)
    with pytest.raises(ArrayError, match="c is null"):
        plan(a, b, None, out)
    with pytest.raises(ArrayError, match="a is null"):
        plan(0, 0, out=out.ctypes.data)
    with pytest.raises(ArrayError, match=r"operands are at a 1, b 18446744073709551616, .*allowed: addresses of 64"):
        plan(1, 2**64, 1, 1)
    with pytest.raises(ArrayError, match="stream is 'mine'; allowed: addresses"):
        plan(a, b, c, out, stream="mine")  # type: ignore[arg-type]


def test_addresses_are_looked_up_once(dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a plan's first call with addresses in each thread, and by every bind; arrays tell their device themselves."""
    asked: list[list[str]] = []

    def check(regions: list[Region], device: str) -> None:
        asked.append([region.name for region in regions if region.address])
        if len(asked) == 1:
            raise ArrayError("not here")

    monkeypatch.setattr("kernelwright.dispatch.core.workspace.check_addresses", check)
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    a, b, out = random(3, 4), random(4, 5), np.zeros((3, 5), np.float32)
    left, right, at = (array.ctypes.data for array in (a, b, out))
    with pytest.raises(ArrayError, match="not here"):
        plan(left, right, out=at)
    assert not out.any() and asked == [["A", "B", "D"]]
    for _ in range(3):
        plan(left, right, out=at)
        plan(a, b, out=out)
    assert len(asked) == 2
    with ThreadPoolExecutor(1) as pool:
        pool.submit(plan, left, right, out=at).result()
    assert len(asked) == 3
    for count in (4, 5):
        bound = plan.bind(left, right, out=at)
        assert bound() == bound() == at and len(asked) == count
    plan.bind(a, b, out=out)()
    assert len(asked) == 5


def test_plans_take_other_arrays_each_time(dispatcher: Dispatcher) -> None:
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr", beta=1))
    rng = np.random.default_rng(0)
    for turn in range(6):
        a, b, c = (rng.standard_normal(shape, dtype=np.float32) for shape in ((3, 4), (4, 5), (3, 5)))
        wide = np.zeros((3, 9), np.float32)
        out = np.empty((3, 5), np.float32)
        np.testing.assert_allclose(plan(a, b, c, out), a @ b + c, rtol=1e-5, atol=1e-6)
        if turn % 2:
            with pytest.raises(ArrayError, match="leading dimension 5"):
                plan(a, b, c, wide[:, :5])
    frozen = np.empty((3, 5), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ArrayError, match="cannot be written"):
        plan(a, b, c, frozen)
    shifted = np.zeros(49, np.uint8)[1:].view(np.float32).reshape(3, 4)
    with pytest.raises(ArrayError, match="not aligned"):
        plan(shifted, b, c, out)
    with pytest.raises(ArrayError, match="c is null"):
        plan(a, b, None, out)


def test_bound_plans_repeat(dispatcher: Dispatcher) -> None:
    a, b, out = random(3, 4), random(4, 5), np.empty((3, 5), np.float32)
    bound = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr")).bind(a, b, out=out)
    a *= 2
    assert bound() is out
    np.testing.assert_allclose(out, a @ b, rtol=1e-5)


def test_failing_launches_raise(dispatcher: Dispatcher) -> None:
    a, b = np.zeros((2, 2), np.int8), np.zeros((2, 2), np.int8)
    with pytest.raises(LaunchError, match="gemm_int8_rcr_fails: launch failed: the mock runtime said no"):
        dispatcher.gemm(a, b.T)
    bound = dispatcher.plan(GemmProblem(2, 2, 2, dtype="int8")).bind(a, b.T, out=np.zeros((2, 2), np.int32))
    with pytest.raises(LaunchError):
        bound()


def test_plans_are_forgotten_but_not_while_in_use(library: KernelLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.dispatch.core.native_dispatcher.PLAN_LIMIT", 8)
    dispatcher = Dispatcher(library)
    destroyed: list[int] = []
    destroy = dispatcher._core.native.kw_plan_destroy

    def spy(handle: Any) -> None:
        destroyed.append(handle.value)
        destroy(handle)

    spied = SimpleNamespace(kw_plan_destroy=spy)
    for name in ("kw_plan_create", "kw_plan_get_info", "kw_plan_get_stage"):
        setattr(spied, name, getattr(dispatcher._core.native, name))
    monkeypatch.setattr(dispatcher._core, "native", spied)
    kept = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    for m in range(1, 41):
        a, b = random(m, 4), random(4, 5)
        np.testing.assert_allclose(dispatcher.gemm(a, b), a @ b, atol=1e-5)
    assert (
        len(dispatcher._core.plans) <= 8 and len(dispatcher._gemm.by_views) <= 8 and len(dispatcher._gemm.by_call) <= 8
    )
    assert len(destroyed) >= 20 and kept._handle.value not in destroyed
    a, b, out = random(3, 4), random(4, 5), np.empty((3, 5), np.float32)
    np.testing.assert_allclose(kept(a, b, out=out), a @ b, atol=1e-5)
    handle = kept._handle.value
    dispatcher._core.plans.clear()
    dispatcher._gemm.by_views.clear()
    dispatcher._gemm.by_call.clear()
    before = len(destroyed)
    del kept
    assert destroyed[before:] == [handle]
