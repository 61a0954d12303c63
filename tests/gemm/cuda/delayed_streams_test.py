"""Launches on streams that do their work later: whatever is on a wrong stream leaves wrong numbers.

The stand-in torch puts everything on its current stream, allocation included: memory that it gives out is overwritten
there, and used again for work of the same stream only, as PyTorch's allocator does it.
"""

from __future__ import annotations

import ctypes
import hashlib
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, Device, Dispatcher, GemmProblem, KernelLibrary
from kernelwright.dispatch.arrays import guards
from kernelwright.dispatch.core import arena, workspace
from kernelwright.dispatch.testdata import mocks
from kernelwright.dispatch.testdata.torch_stand_in import FLOAT32, Dtype, Tensor, Torch

HERE = Path(__file__).parent
DEVICE = 1
RECOGNITION = ('KW_CUDA_TARGET="sm_90a"', "KW_CUDA_MAJOR=9", "KW_CUDA_MINOR=0", "KW_CUDA_MULTIPROCESSORS=132")
PROBLEM = GemmProblem(5, 7, 6, layout="rrr")
FIRST, SECOND, THIRD = (0x1000 * (1 + DEVICE) + number for number in (1, 2, 3))
REST = {FIRST: 5_000, SECOND: 500, THIRD: 20_000}  # microseconds before each piece of work


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    """A mock library whose kernels go through the CUDA launcher to the streams of the stand-in runtime."""
    folder = mocks.write_library(tmp_path_factory.mktemp("sm_90a"), "MOCK_ANY_DEVICE", arch="sm_90a", backend="cutlass")
    launcher = mocks.NATIVE / "launchers/cuda/common/runtime.cpp"
    sources = [mocks.HERE / "mock_library.c", HERE / "delayed_streams.c", HERE / "fake_cuda.c", launcher]
    macros = ("MOCK_STREAMS", "MOCK_ANY_DEVICE", 'MOCK_ARCH="sm_90a"', "MOCK_BACKEND=KW_BACKEND_CUDA", *RECOGNITION)
    defines = [f"-D{macro}" for macro in (*macros, 'MOCK_NAME="mock"', 'MOCK_SEED="0"')]
    flags = ["-fno-exceptions", "-O2", "-fvisibility=hidden", "-I", str(HERE / "fake"), *defines]
    file = mocks.compile_shared([*mocks.compilers()[0], *flags, *map(str, sources), "-lpthread"], folder / "new.so")
    file.replace(folder / "libmock.so")
    digest = hashlib.sha256((folder / "libmock.so").read_bytes()).hexdigest()
    return KernelLibrary.load(mocks.edit_manifest(folder, sha256=digest))


class DelayedTorch(Torch):
    """torch on a GPU whose streams are those of the library's runtime."""

    def __init__(self, library: KernelLibrary) -> None:
        super().__init__()
        self.runtime = ctypes.CDLL(str(library.path))
        self.runtime.delayed_copy.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
        self.runtime.delayed_poison.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
        self.runtime.delayed_rest.argtypes = [ctypes.c_uint64, ctypes.c_uint]
        self.runtime.delayed_wait.argtypes = [ctypes.c_uint64]
        self.stream, self.kept = FIRST, list[Any]()
        self.free: dict[tuple[int, int], list[np.ndarray[Any, Any]]] = {}
        for stream, rest in REST.items():
            self.runtime.delayed_rest(stream, rest)

    def empty(self, shape: tuple[int, ...] | int, dtype: Dtype, device: Any = None) -> Tensor:
        """Memory that the current stream overwrites when it gets there."""
        sizes = (shape,) if isinstance(shape, int) else shape
        kind: Any = np.float32 if dtype is FLOAT32 else np.uint8
        stream, nbytes = self.stream, int(np.prod(sizes)) * np.dtype(kind).itemsize
        free = self.free.setdefault((stream, nbytes), [])
        memory = free.pop() if free else np.zeros(nbytes, np.uint8)
        made = DelayedTensor(memory.view(kind).reshape(sizes), SimpleNamespace(type="cuda", index=DEVICE))
        made.runtime = self
        weakref.finalize(made, free.append, memory).atexit = False
        self.runtime.delayed_poison(stream, memory.ctypes.data, nbytes)
        return made

    def produced(self, values: np.ndarray[Any, Any]) -> Tensor:
        """A tensor that has its values when the current stream gets there."""
        made, source = self.empty(values.shape, FLOAT32), values.astype(np.float32)
        self.kept.append(source)
        self.runtime.delayed_copy(self.stream, made.data_ptr(), source.ctypes.data, source.nbytes)
        return made

    def wait(self) -> None:
        """Until all streams are done."""
        for stream in REST:
            self.runtime.delayed_wait(stream)


class DelayedTensor(Tensor):
    """A tensor whose copies are work of the current stream."""

    def copy_(self, source: Tensor) -> None:
        """Copy later."""
        assert isinstance(self.runtime, DelayedTorch)
        self.runtime.kept.append(source)
        runtime = self.runtime.runtime
        runtime.delayed_copy(self.runtime.stream, self.data_ptr(), source.data_ptr(), self.array.nbytes)


DelayedTensor.__module__ = "torch"


@pytest.fixture
def torch(library: KernelLibrary, monkeypatch: pytest.MonkeyPatch) -> Any:
    made = DelayedTorch(library)
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.setattr(guards, "compiler_guard", lambda: None)
    arena.of_thread().free()
    yield made
    made.wait()
    arena.of_thread().free()


@pytest.fixture
def dispatcher(library: KernelLibrary) -> Dispatcher:
    mocks.native_library()
    return Dispatcher(library, Device(f"cuda:{DEVICE}", arch="sm_90a"))


def numbers(seed: int, *shape: int) -> np.ndarray[Any, Any]:
    """Small whole numbers, whose products are exact."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float64)


Check = Callable[[], None]


def multiply(torch: DelayedTorch, gemm: Callable[..., Any], seed: int, m: int = 5, **options: Any) -> Check:
    """One product of operands that the current stream makes; the result checks it once all streams are done."""
    a, b = numbers(seed, m, 6), numbers(seed + 1, 6, 7)
    out = gemm(torch.produced(a), torch.produced(b), **options)
    return lambda: np.testing.assert_array_equal(out.array, a @ b)


def test_a_launch_on_a_stream_that_does_not_make_its_operands_comes_too_early(
    dispatcher: Dispatcher, torch: DelayedTorch
) -> None:
    """The control: streams really run apart, so the tests below can fail."""
    check = multiply(torch, dispatcher.gemm, 0, stream=SECOND)
    torch.wait()
    with pytest.raises(AssertionError):
        check()


def test_launches_follow_the_current_stream(dispatcher: Dispatcher, torch: DelayedTorch) -> None:
    checks = []
    for number, stream in enumerate((FIRST, SECOND, THIRD) * 3):  # checked in full, then recognised
        torch.stream = stream
        checks.append(multiply(torch, dispatcher.gemm, 10 * number))
    torch.wait()
    for check in checks:
        check()


@pytest.mark.parametrize("current", [FIRST, SECOND, THIRD])
def test_everything_of_a_launch_is_on_the_stream_that_is_given(
    dispatcher: Dispatcher, torch: DelayedTorch, current: int
) -> None:
    """The result is allocated, C copied and the workspace used there, whichever stream is current."""
    checks = []
    for number, stream in enumerate((FIRST, SECOND, THIRD) * 2):
        torch.stream = stream  # which makes the operands
        a, b, c = (numbers(10 * number + i, *shape) for i, shape in enumerate(((5, 6), (6, 7), (5, 7))))
        made = [torch.produced(values) for values in (a, b, c)]
        torch.stream = current
        out = dispatcher.gemm(*made, beta=2.0, stream=stream)
        checks.append((out, a @ b + 2 * c, made))
    torch.wait()
    for out, expected, _ in checks:
        np.testing.assert_array_equal(out.array, expected)


def test_workspaces_grow_and_are_freed_while_launches_wait(dispatcher: Dispatcher, torch: DelayedTorch) -> None:
    checks = []
    for number, (m, stream) in enumerate(((5, THIRD), (70, THIRD), (5, FIRST), (130, THIRD), (70, FIRST), (5, SECOND))):
        torch.stream = stream
        checks.append(multiply(torch, dispatcher.gemm, 10 * number, m))
        if number % 2:
            arena.of_thread().free()
    torch.wait()
    for check in checks:
        check()


def test_bound_plans_have_workspaces_of_their_own(dispatcher: Dispatcher, torch: DelayedTorch) -> None:
    """Two plans of one thread wait on two streams at once, and each is launched twice behind the other."""
    checks = []
    for number, stream in enumerate((THIRD, FIRST)):
        torch.stream = stream
        a, b = numbers(number, 5, 6), numbers(number + 5, 6, 7)
        left, right, out = torch.produced(a), torch.produced(b), torch.empty((5, 7), FLOAT32)
        bound = dispatcher.plan(PROBLEM).bind(left, right, out=out)
        bound()
        bound()
        checks.append((out, a @ b, bound))
    torch.wait()
    for out, expected, _ in checks:
        np.testing.assert_array_equal(out.array, expected)


@pytest.fixture
def captured(torch: DelayedTorch, monkeypatch: pytest.MonkeyPatch) -> ctypes.c_size_t:
    """The stream whose work goes into a graph; 0: none."""
    monkeypatch.setattr(workspace, "capture_status", lambda kind: torch.runtime.cuStreamIsCapturing)
    return ctypes.c_size_t.in_dll(torch.runtime, "fake_captured")


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("bare", [True, False])
def test_a_graph_has_a_workspace_that_nothing_shares(
    dispatcher: Dispatcher, torch: DelayedTorch, captured: ctypes.c_size_t, warm: bool, bare: bool
) -> None:
    """What is captured runs later: meanwhile plans use, grow and free the memory that they share."""
    plan, checks = dispatcher.plan(PROBLEM), []

    def gemm(a: Any, b: Any) -> Any:
        return dispatcher.gemm(a, b) if bare else plan(a, b, out=torch.empty((5, 7), FLOAT32))

    def shared() -> list[int]:
        return [one.address for one in arena.of_thread()._found.values()]

    torch.stream = THIRD
    if warm:
        checks += [multiply(torch, gemm, 0), multiply(torch, gemm, 1)]
    before = shared()
    assert len(before) == warm
    captured.value = THIRD
    for seed in (2, 3):
        checks.append(multiply(torch, gemm, seed))
        used = {launch.frame.workspace for launch in states(plan, dispatcher)}
        assert used.isdisjoint(before) and shared() == before
    captured.value = 0
    checks += [multiply(torch, gemm, 4), multiply(torch, gemm, 5)]
    assert {launch.frame.workspace for launch in states(plan, dispatcher)} == {*shared()}
    torch.wait()
    for check in checks:
        check()


def test_launches_apart_share_nothing(dispatcher: Dispatcher, torch: DelayedTorch) -> None:
    plan = dispatcher.plan(PROBLEM)

    def gemm(a: Any, b: Any) -> Any:
        return plan(a, b, out=torch.empty((5, 7), FLOAT32))

    checks = [multiply(torch, gemm, 0)]
    before = [one.address for one in arena.of_thread()._found.values()]
    for seed in (1, 2):
        with arena.Apart(), arena.Apart():
            checks.append(multiply(torch, gemm, seed))
        (state,) = states(plan, dispatcher)
        assert state.frame.workspace not in before and state.kept is None
        assert [one.address for one in arena.of_thread()._found.values()] == before
    checks.append(multiply(torch, gemm, 3))
    (state,) = states(plan, dispatcher)
    assert [state.frame.workspace] == before
    torch.wait()
    for check in checks:
        check()


def states(plan: Any, dispatcher: Dispatcher) -> list[Any]:
    """What this thread keeps of the launches of a plan and of a dispatcher's calls."""
    plans = [plan, *dispatcher._gemm.by_views._recent.values()]
    return [one._local.state for one in plans if hasattr(one._local, "state")]


def test_a_graph_of_arrays_that_are_not_torchs_needs_a_bound_plan(
    dispatcher: Dispatcher, torch: DelayedTorch, captured: ctypes.c_size_t
) -> None:
    plan = dispatcher.plan(PROBLEM)
    a, b, out = torch.produced(numbers(0, 5, 6)), torch.produced(numbers(1, 6, 7)), torch.empty((5, 7), FLOAT32)
    memory = torch.empty(plan.workspace_bytes + 256, None)  # type: ignore[arg-type]
    where, given = [one.data_ptr() for one in (a, b, out)], -(-memory.data_ptr() // 256) * 256
    captured.value = FIRST
    plan.bind(a, b, out=out)()
    plan(*where[:2], out=where[2], stream=FIRST, workspace=given)
    with pytest.raises(ArrayError, match=r"stream 0x2001 is being captured .* bind the plan"):
        plan._write_frame(plan._new_state(), "cupy", FIRST, None)
    torch.wait()
    np.testing.assert_array_equal(out.array, numbers(0, 5, 6) @ numbers(1, 6, 7))


def test_a_stream_of_the_other_device_is_refused(dispatcher: Dispatcher, torch: DelayedTorch) -> None:
    with pytest.raises(ArrayError, match="the stream is of device 0 and the launch is on device 1"):
        multiply(torch, dispatcher.plan(PROBLEM), 0, out=torch.empty((5, 7), FLOAT32), stream=0x1001)
