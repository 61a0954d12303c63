from __future__ import annotations

import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from kernelwright.dispatch import (
    ArchMismatchError,
    ArrayError,
    Dispatcher,
    GemmProblem,
    KernelLibrary,
    NoKernelError,
    ProblemError,
    operand,
)
from kernelwright.dispatch.operations.gemm.from_arrays import read_operands
from kernelwright.dispatch.testdata import mocks
from kernelwright.problems.literals import GemmLayout


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    mocks.native_library()
    return KernelLibrary.load(mocks.write_library(tmp_path_factory.mktemp("library")))


@pytest.fixture(scope="module")
def dispatcher(library: KernelLibrary) -> Dispatcher:
    return Dispatcher([library])


def random(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def test_plan_gemm_is_the_plan_that_gemm_launches(library: KernelLibrary) -> None:
    dispatcher = Dispatcher(library)
    a, b = random(3, 7), random(7, 5)
    plan = dispatcher.plan_gemm(a, b, alpha=2)
    assert plan.problem == GemmProblem(3, 5, 7, layout="rrr", alpha=2.0, split_k=0)
    assert dispatcher.plan_gemm(a, b, alpha=2) is plan
    out = np.zeros((3, 5), np.float32)
    bound = dispatcher.plan_gemm(a, b, out=out).bind(a, b, out=out)
    assert (out == 0).all() and bound() is out
    np.testing.assert_array_equal(out, dispatcher.gemm(a, b))
    with pytest.raises(ProblemError, match="alpha is 'x'"):
        dispatcher.plan_gemm(a, b, alpha="x")  # type: ignore[arg-type]
    wide = random(5, 14)[:, ::2]
    with pytest.raises(ArrayError, match="one of them must be 1"):
        dispatcher.plan_gemm(wide, b)


@pytest.fixture
def slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """Arrays of the calls that gemm() checked in full, in order."""
    calls: list[object] = []

    def spy(*arrays: Any, **options: Any) -> Any:
        calls.append(arrays)
        return read_operands(*arrays, **options)

    monkeypatch.setattr("kernelwright.dispatch.operations.gemm.calls.read_operands", spy)
    return calls


@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 7, 3), (33, 1, 17), (1, 40, 5)])
@pytest.mark.parametrize("layout", ["rcr", "rrr", "crr", "ccr"])
def test_gemm_is_right_in_every_layout(dispatcher: Dispatcher, layout: GemmLayout, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a = random(m, k) if layout[0] == "r" else random(k, m).T
    b = random(k, n) if layout[1] == "r" else random(n, k).T
    c = random(m, n)
    np.testing.assert_allclose(dispatcher.gemm(a, b), a @ b, rtol=1e-5, atol=1e-5)
    expected = 2 * (a @ b) + 3 * c
    np.testing.assert_allclose(dispatcher.gemm(a, b, c, alpha=2, beta=3), expected, rtol=1e-5, atol=1e-5)
    out = c.copy()
    assert dispatcher.gemm(a, b, out, out, alpha=2, beta=3, layout=layout) is out
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)


def test_gemm_writes_views_in_place(dispatcher: Dispatcher) -> None:
    big = np.full((8, 12), 7, np.float32)
    a, b = random(3, 4), random(4, 5)
    dispatcher.gemm(a, b, out=big[2:5, 3:8])
    np.testing.assert_allclose(big[2:5, 3:8], a @ b, rtol=1e-5)
    assert (np.delete(big, slice(2, 5), 0) == 7).all() and (big[:, :3] == 7).all() and (big[:, 8:] == 7).all()


@pytest.mark.parametrize("sizes", [(0, 3, 4), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_zero_sizes_work(dispatcher: Dispatcher, sizes: tuple[int, int, int]) -> None:
    m, n, k = sizes
    a, b, c = random(m, k), random(k, n), random(m, n)
    np.testing.assert_array_equal(dispatcher.gemm(a, b), np.zeros((m, n)))
    np.testing.assert_allclose(dispatcher.gemm(a, b, c, beta=2.0), 2 * c)


def test_bad_arrays_are_refused_before_a_launch(dispatcher: Dispatcher) -> None:
    with pytest.raises(ArrayError, match="they must be equal"):
        dispatcher.gemm(random(3, 4), random(5, 6))
    with pytest.raises(ArrayError, match="negative"):
        dispatcher.gemm(random(3, 4)[::-1], random(4, 6))
    with pytest.raises(NoKernelError, match="rrc"):
        dispatcher.gemm(random(3, 4), random(4, 6), layout="rrc")


def test_gemm_recognises_calls(library: KernelLibrary, slow_calls: list[object]) -> None:
    dispatcher, rng = Dispatcher(library), np.random.default_rng(0)
    ways: list[tuple[int, bool, Any]] = [(3, False, 1.0), (4, False, 1.0), (4, True, 1.0), (4, True, np.float32(2))]
    for _ in range(5):
        for m, transposed, alpha in ways:
            a = rng.standard_normal((m, 4), np.float32)
            b = rng.standard_normal((4, 4), np.float32)
            b = b.T if transposed else b
            out = np.empty((m, 4), np.float32)
            assert dispatcher.gemm(a, b, out=out, alpha=alpha) is out
            np.testing.assert_allclose(out, alpha * (a @ b), rtol=1e-4, atol=1e-5)
            made = dispatcher.gemm(a, b, alpha=alpha)
            assert made is not out and made is not dispatcher.gemm(a, b, alpha=alpha)
            np.testing.assert_array_equal(made, out)
    assert len(slow_calls) == 8
    a, out = np.ones((3, 4), np.float32), np.empty((3, 9), np.float32)
    for _ in range(2):
        dispatcher.gemm(a, np.ones((4, 4), np.float32), out=out[:, :4])
        dispatcher.gemm(a, np.ones((4, 4), np.float32), out=np.empty((3, 4), np.float32))
    assert len(slow_calls) == 9 and (out[:, :4] == 4).all()
    dispatcher.set_priority(dispatcher.kernels[0], 1)
    dispatcher.gemm(a, np.ones((4, 4), np.float32), out=out[:, :4])
    assert len(slow_calls) == 10


def test_gemm_checks_recognised_calls(library: KernelLibrary, slow_calls: list[object]) -> None:
    dispatcher = Dispatcher(library)
    a, b, c, out = random(4, 4), random(4, 4), random(4, 4), np.empty((4, 4), np.float32)
    flat = random(40)
    frozen, shifted = out.copy(), np.zeros(65, np.uint8)[1:].view(np.float32).reshape(4, 4)
    frozen.flags.writeable = False
    refused: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("shares memory with a", (a, b, None, a), {}),
        ("shares memory with b", (a, flat[:16].reshape(4, 4), None, flat[10:26].reshape(4, 4)), {}),
        ("overlaps c", (a, b, flat[:16].reshape(4, 4), flat[10:26].reshape(4, 4)), {"beta": 2}),
        ("cannot be written", (a, b, None, frozen), {}),
        ("not aligned", (shifted, b, None, out), {}),
        ("out is 3x4", (a, b, None, out[:3]), {}),
        ("out of shape", (a, b, None, random(8, 8)[::2, ::2]), {}),
        ("not row-major", (a.T, b, None, out), {"layout": "rrr"}),
        ("byte order", (a.astype(">f4"), b, None, out), {}),
        ("c is not given", (a, b, None, out), {"beta": 2}),
        ("beta is 0", (a, b, c, out), {}),
        ("a list", (a, b, None, [1.0]), {}),
    ]
    for message, arrays, options in refused * 2:
        for layout in (None, "rrr"):
            np.testing.assert_allclose(dispatcher.gemm(a, b, out=out, layout=layout), a @ b, rtol=1e-4, atol=1e-5)
        dispatcher.gemm(a, b, c, out, beta=2)
        np.testing.assert_allclose(out, a @ b + 2 * c, rtol=1e-4, atol=1e-5)
        before = len(slow_calls)
        with pytest.raises(ArrayError, match=message):
            dispatcher.gemm(*arrays, **options)
        assert len(slow_calls) == before + 1
    with pytest.raises(NoKernelError):
        dispatcher.gemm(a, b, out=np.empty((4, 4), np.float16))


def test_gemm_recognises_tensors(library: KernelLibrary, slow_calls: list[object]) -> None:
    torch = pytest.importorskip("torch")
    dispatcher = Dispatcher(library)
    for _ in range(3):
        a, b, out = torch.randn(4, 4), torch.randn(4, 4), torch.empty(4, 4)
        for right in (b, b.t()):
            assert dispatcher.gemm(a, right, out=out) is out
            torch.testing.assert_close(out, a @ right)
            torch.testing.assert_close(dispatcher.gemm(a, right), a @ right)
        with pytest.raises(ArrayError, match="shares memory"):
            dispatcher.gemm(a, b, out=b)
        with pytest.raises(ArrayError, match="layout"):
            dispatcher.gemm(a.to_sparse(), b, out=out)
        with pytest.raises(ArrayError, match="on meta"):
            dispatcher.gemm(a.to("meta"), b)
        with pytest.raises(ArrayError, match="out is 4x3"):
            dispatcher.gemm(a, b, out=out[:, :3])
    assert len(slow_calls) == 4 + 3 * 4
    alpha = torch.tensor(2.0)
    for factor in (2.0, 3.0):  # the same object with another value
        alpha.fill_(factor)
        torch.testing.assert_close(dispatcher.gemm(a, b, alpha=alpha), factor * (a @ b))


def test_threads_share_a_dispatcher(dispatcher: Dispatcher) -> None:
    failures: list[object] = []

    def work(seed: int) -> None:
        for i in range(40):
            a, b = random(1 + (seed + i) % 9, 4), random(4, 3 + seed)
            if not np.allclose(dispatcher.gemm(a, b), a @ b, atol=1e-5):
                failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_threads_repeat_calls_with_a_small_cache(library: KernelLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.dispatch.core.native_dispatcher.PLAN_LIMIT", 4)
    dispatcher, failures = Dispatcher(library), []

    def work(seed: int) -> None:
        for i in range(120):
            m, alpha = 1 + (i // 10) % 3, 1.0 + seed % 2
            a, b, out = random(m, 4), random(4, 3), np.empty((m, 3), np.float32)
            if not np.allclose(dispatcher.gemm(a, b, out=out, alpha=alpha), alpha * (a @ b), atol=1e-5):
                failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(dispatcher._gemm.by_call) <= 4


def test_threads_use_a_small_cache(library: KernelLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.dispatch.core.native_dispatcher.PLAN_LIMIT", 4)
    dispatcher, failures = Dispatcher(library), []

    def work(seed: int) -> None:
        for i in range(60):
            a, b = random(1 + (seed * 5 + i) % 13, 4), random(4, 3)
            if not np.allclose(dispatcher.gemm(a, b), a @ b, atol=1e-5):
                failures.append((seed, i))

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_eight_bit_floats_must_be_of_the_format_of_the_arch(dispatcher: Dispatcher) -> None:
    plan = dispatcher.plan(GemmProblem(2, 2, 2))
    a, ocp, fnuz = (np.zeros((2, 2), kind) for kind in (np.float32, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz))
    for arrays, name in (((fnuz, a, None, a), "a"), ((a, a, None, fnuz), "out")):
        views = [None if array is None else operand(array) for array in arrays]
        with pytest.raises(ArchMismatchError, match=f"{name} is in the FNUZ format of fp8; allowed on x86_64_v3: OCP"):
            plan.launch_views(arrays, views, None)
    plan.launch_views((ocp, a, None, a.copy()), [operand(ocp), operand(a), None, operand(a.copy())], None)


def test_tensors_of_the_same_shapes_and_other_metadata_are_told_apart(dispatcher: Dispatcher) -> None:
    """Remembered calls are found by shapes; everything else of the tensors is compared before a launch."""
    torch = pytest.importorskip("torch")
    a, b, c = (torch.randn(4, 4) for _ in range(3))
    wide = torch.randn(4, 8)
    for _ in range(3):
        for left, right in ((a, b), (a, b.t()), (a, b), (a.t(), b.t()), (wide[:, :4], b), (a, wide[:, 4:])):
            for _ in range(3):
                torch.testing.assert_close(dispatcher.gemm(left, right), left @ right)
        torch.testing.assert_close(dispatcher.gemm(a, b, c, beta=1.0), a @ b + c)
        with pytest.raises((ArrayError, NoKernelError)):
            dispatcher.gemm(a, b, out=torch.empty(4, 8)[:, ::2])
        with pytest.raises(ArrayError):
            dispatcher.gemm(a, b, out=a)
        with pytest.raises(ArrayError, match="grad"):
            dispatcher.gemm(a.requires_grad_(), b)
        a.requires_grad_(False)


@pytest.mark.parametrize("options", [{"activation": []}, {"d_op": {}}, {"layout": []}, {"split_k": [1]}], ids=repr)
def test_options_that_cannot_be_hashed_are_refused_by_name(dispatcher: Dispatcher, options: dict[str, Any]) -> None:
    a, b = random(3, 7), random(7, 5)
    with pytest.raises((ArrayError, ProblemError), match=f"{next(iter(options))} is .*; allowed: "):
        dispatcher.gemm(a, b, **options)


@pytest.mark.parametrize("split_k", [True, 1.0])
def test_a_call_that_was_checked_vouches_for_no_other_type(dispatcher: Dispatcher, split_k: Any) -> None:
    a, b = random(3, 7), random(7, 5)
    dispatcher.gemm(a, b, split_k=1)
    with pytest.raises(ProblemError, match=r"split_k is .*; allowed: an integer"):
        dispatcher.gemm(a, b, split_k=split_k)


@pytest.mark.parametrize(
    "ds", [None, 1, random(3, 5), (random(3, 5) for _ in range(1))], ids=lambda ds: type(ds).__name__
)
def test_d_tensors_come_in_a_list(dispatcher: Dispatcher, ds: Any) -> None:
    for call in (dispatcher.gemm, dispatcher.plan_gemm):
        with pytest.raises(ArrayError, match=rf"ds is a {type(ds).__name__}; allowed: a list or tuple of arrays; pass"):
            call(random(3, 7), random(7, 5), ds=ds)
