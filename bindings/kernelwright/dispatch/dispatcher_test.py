from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import (
    ArchMismatchError,
    ArrayError,
    Device,
    Dispatcher,
    GemmProblem,
    KernelEntry,
    KernelLibrary,
    LaunchError,
    LibraryLoadError,
    LibraryNotFoundError,
    NoKernelError,
    SelectionError,
    native,
)
from kernelwright.dispatch.matching import check_format, match
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


def test_selections(library: KernelLibrary) -> None:
    problem = GemmProblem(5, 9, 64)
    analytic = Dispatcher(library).select(problem)
    assert analytic.kernel.name == "gemm_fp32_rcr_32x32x32"
    assert analytic.reason == "fastest predicted of 3"
    first = Dispatcher(library, selection="first_fit")
    assert first.select(problem).kernel.name == "gemm_fp32_rcr_128x128x64"
    first.set_priority("gemm_fp32_rcr_64x64x64_whole", 1)
    assert first.select(problem).kernel.name == "gemm_fp32_rcr_64x64x64_whole"
    first.set_priority(analytic.kernel, 2)
    assert first.select(problem).kernel is analytic.kernel
    for named in (analytic.kernel.name, analytic.kernel.identity):
        assert Dispatcher(library, selection=named).select(problem).kernel is analytic.kernel
    with pytest.raises(SelectionError, match="kernel fastest is none of the 9"):
        Dispatcher(library, selection="fastest")
    with pytest.raises(SelectionError, match="selection is 3"):
        Dispatcher(library, selection=3)  # type: ignore[arg-type]
    with pytest.raises(SelectionError, match="nope"):
        first.set_priority("nope", 1)


def test_a_function_selects(library: KernelLibrary) -> None:
    seen: list[GemmProblem] = []

    def by_length(problem: GemmProblem, candidates: Sequence[KernelEntry]) -> list[float]:
        seen.append(problem)
        return [-len(candidate.name) for candidate in candidates]

    dispatcher = Dispatcher(library, selection=by_length)
    problem = GemmProblem(64, 64, 64)
    selection = dispatcher.select(problem)
    assert selection.kernel.name == "gemm_fp32_rcr_64x64x64_whole"
    assert selection.reason == "best of 3 by by_length"
    assert dispatcher.select(problem) is selection and seen == [problem]
    assert Dispatcher(library, selection=lambda *_: [float("inf")] * 3).explain(problem).chosen is None
    with pytest.raises(SelectionError, match="1 scores for 3"):
        Dispatcher(library, selection=lambda *_: [1.0]).select(problem)
    with pytest.raises(ZeroDivisionError):
        Dispatcher(library, selection=lambda *_: [1 / 0]).explain(problem)


def test_explain_ranks_every_kernel(dispatcher: Dispatcher) -> None:
    explanation = dispatcher.explain(GemmProblem(5, 9, 65))
    assert len(explanation) == 9 and [kernel.rank for kernel in explanation][:3] == [1, 2, None]
    assert explanation.chosen is not None and explanation.chosen.name == "gemm_fp32_rcr_32x32x32"
    assert explanation.chosen.estimate is not None and explanation.chosen.estimate.useful > 0
    refused = {kernel.name: kernel.reason for kernel in explanation if kernel.rank is None}
    assert refused["gemm_fp32_rcr_64x64x64_whole"] == "k is 65, not a multiple of tile_k 64"
    assert refused["a_gemm_fp32_rcr_exotic"] == "the device lacks made_up_feature"
    assert refused["gemm_fp32_rrr_32x32x32"] == "layout_b is column-major, this kernel serves row-major"
    text = str(explanation)
    assert (
        "gemm fp32 rcr 5x9x65, analytic: fastest predicted of 3" in text
        and "no: dtype_a is fp32" in text
        and len(text.splitlines()) == 10
    )
    nothing = dispatcher.explain(GemmProblem(5, 9, 65, dtype="bf16"))
    assert nothing.chosen is None and nothing.reason == "no kernel serves this problem"
    with pytest.raises(NoKernelError, match=r"bf16 rcr 5x9x65.*dtype_a is bf16"):
        dispatcher.select(nothing.problem)


def test_export_lists_kernels_in_order(library: KernelLibrary) -> None:
    exported = json.loads(Dispatcher(library).export_json())
    names = [kernel["name"] for kernel in exported["kernels"]]
    assert names == sorted(names) and len(names) == 9
    assert exported["libraries"] == [{"name": "mock", "arch": "x86_64_v3", "abi_version": 3, "kernels": 9}]


@pytest.mark.parametrize("sizes", [(1, 1, 1), (5, 7, 3), (33, 1, 17), (1, 40, 5)])
@pytest.mark.parametrize("layout", ["rcr", "rrr", "crr", "ccr"])
def test_gemm_is_right_in_every_layout(dispatcher: Dispatcher, layout: str, sizes: tuple[int, int, int]) -> None:
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


@pytest.fixture
def slow_calls(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What gemm() did not recognise, in order."""
    calls: list[object] = []

    def spy(*arrays: Any, **options: Any) -> Any:
        calls.append(arrays)
        return match(*arrays, **options)

    monkeypatch.setattr("kernelwright.dispatch.dispatcher.match", spy)
    return calls


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
    with pytest.raises(ArrayError, match=r"out are at 1, 18446744073709551616, .*allowed: addresses of 64 bit"):
        plan(1, 2**64, 1, 1)
    with pytest.raises(ArrayError, match="stream is 'mine'; allowed: addresses"):
        plan(a, b, c, out, stream="mine")  # type: ignore[arg-type]


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


def test_plans_are_forgotten_but_not_while_in_use(library: KernelLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.dispatch.dispatcher.PLAN_LIMIT", 8)
    dispatcher = Dispatcher(library)
    destroyed: list[int] = []
    destroy = dispatcher._native.kw_plan_destroy

    def spy(handle: Any) -> None:
        destroyed.append(handle.value)
        destroy(handle)

    spied = SimpleNamespace(kw_plan_destroy=spy)
    for name in ("kw_plan_create", "kw_plan_get_info", "kw_plan_get_stage"):
        setattr(spied, name, getattr(dispatcher._native, name))
    monkeypatch.setattr(dispatcher, "_native", spied)
    kept = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr"))
    for m in range(1, 41):
        a, b = random(m, 4), random(4, 5)
        np.testing.assert_allclose(dispatcher.gemm(a, b), a @ b, atol=1e-5)
    assert len(dispatcher._plans) <= 8 and len(dispatcher._by_arrays) <= 8 and len(dispatcher._by_call) <= 8
    assert len(destroyed) >= 20 and kept._handle.value not in destroyed
    a, b, out = random(3, 4), random(4, 5), np.empty((3, 5), np.float32)
    np.testing.assert_allclose(kept(a, b, out=out), a @ b, atol=1e-5)
    handle = kept._handle.value
    dispatcher._plans.clear()
    dispatcher._by_arrays.clear()
    dispatcher._by_call.clear()
    before = len(destroyed)
    del kept
    assert destroyed[before:] == [handle]


def test_threads_repeat_calls_with_a_small_cache(library: KernelLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.dispatch.dispatcher.PLAN_LIMIT", 4)
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
    assert not failures and len(dispatcher._by_call) <= 4


def test_threads_use_a_small_cache(library: KernelLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelwright.dispatch.dispatcher.PLAN_LIMIT", 4)
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


def test_dispatchers_are_independent(library: KernelLibrary) -> None:
    one, two = Dispatcher(library), Dispatcher(library, selection="first_fit")
    problem = GemmProblem(5, 9, 64)
    plan = one.plan(problem)
    del one
    gc.collect()
    a, b, out = random(5, 64), random(9, 64).T, np.empty((5, 9), np.float32)
    np.testing.assert_allclose(plan(a, b, out=out), a @ b, atol=1e-4)
    assert two.select(problem).kernel is not plan.kernel
    two.set_num_threads(2)
    with pytest.raises(SelectionError, match="at most 64"):
        two.set_num_threads(99)
    assert len(two.kernels) == 9


def test_libraries_must_suit_the_device(tmp_path: Path, library: KernelLibrary) -> None:
    mocks.native_library()
    foreign = mocks.write_library(tmp_path / "gfx942", arch="gfx942", backend="ck_tile", seed="9")
    with pytest.raises(ArchMismatchError, match="runs on hip; device is cpu"):
        Dispatcher([foreign])
    with pytest.raises(ArchMismatchError, match="gfx942; allowed by this dispatcher: gfx90a"):
        Dispatcher(foreign, device=Device("hip:0", arch="gfx90a"))
    refused = mocks.write_library(tmp_path / "refused", "MOCK_DEVICE=KW_ARCH_MISMATCH", seed="a")
    with pytest.raises(ArchMismatchError, match="cannot run on device 0: the mock device"):
        Dispatcher(refused)
    with pytest.raises(LibraryLoadError, match="add each kernel once"):
        Dispatcher([library, library])
    with pytest.raises(LibraryNotFoundError, match="libraries is empty"):
        Dispatcher([])


def test_gpu_devices_are_checked_at_the_first_launch(tmp_path: Path) -> None:
    mocks.native_library()
    folder = mocks.write_library(tmp_path, "MOCK_DEVICE=KW_RUNTIME_MISSING", arch="gfx942", backend="ck_tile", seed="b")
    dispatcher = Dispatcher(folder, device="hip:0")
    problem = GemmProblem(64, 64, 64)
    assert dispatcher.select(problem).kernel.arch == "gfx942"
    assert dispatcher.explain(problem).chosen is not None
    with pytest.raises(Exception, match="the mock device 0 is something else"):
        dispatcher.plan(problem)(4096, 4096, out=4096)
    a = np.zeros((2, 2), np.float32)
    with pytest.raises(ArrayError, match="arrays are on cpu; allowed by this dispatcher: hip:0"):
        dispatcher.gemm(a, a)
    with pytest.raises(ArrayError, match="a is on cpu; allowed for this plan: hip:0"):
        dispatcher.plan(GemmProblem(2, 2, 2, layout="rrr"))(a, a, out=a.copy())


def test_eight_bit_floats_must_be_of_the_format_of_the_arch(dispatcher: Dispatcher) -> None:
    import ml_dtypes

    from kernelwright.dispatch.arrays import operand

    plan = dispatcher.plan(GemmProblem(2, 2, 2))
    check_format("a", operand(np.zeros((2, 2), ml_dtypes.float8_e4m3fn)), plan.kernel.arch)
    with pytest.raises(ArchMismatchError, match="a is in the FNUZ format of fp8; allowed on x86_64_v3: OCP"):
        check_format("a", operand(np.zeros((2, 2), ml_dtypes.float8_e4m3fnuz)), plan.kernel.arch)
    a, out = operand(random(2, 2)), operand(np.zeros((2, 2), ml_dtypes.float8_e4m3fnuz))
    with pytest.raises(ArchMismatchError, match="out is in the FNUZ format"):
        plan.run_views(a, a, None, out, None)


def test_native_library_errors(monkeypatch: pytest.MonkeyPatch, library: KernelLibrary) -> None:
    from kernelwright.dispatch import NativeLibraryError

    monkeypatch.setattr(native, "_loaded", None)
    monkeypatch.setenv("KERNELWRIGHT_LIBRARY", str(library.path))
    with pytest.raises(NativeLibraryError, match="not the native dispatcher"):
        native.library()
    monkeypatch.setenv("KERNELWRIGHT_LIBRARY", "/nowhere.so")
    with pytest.raises(NativeLibraryError, match="nowhere"):
        native.library()


def test_importing_loads_no_native_code_and_no_array_library() -> None:
    code = "import sys, kernelwright.dispatch as d; d.GemmProblem(1, 2, 3); d.Device('cuda:0')\n"
    code += "from kernelwright.dispatch import native; assert native._loaded is None\n"
    code += "assert not {'torch', 'cupy', 'jax', 'ml_dtypes'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": ":".join(sys.path)}, timeout=60)
