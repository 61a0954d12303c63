"""Which stream everything of a launch goes to: the mock CPU kernels run in memory that poses as a GPU's."""

from __future__ import annotations

import ctypes
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, Device, Dispatcher, GemmProblem, Plan
from kernelwright.dispatch.arrays import dlpack, guards
from kernelwright.dispatch.arrays.view import view
from kernelwright.dispatch.core import arena
from kernelwright.dispatch.core.workspace import on_stream
from kernelwright.dispatch.testdata import mocks
from kernelwright.dispatch.testdata.torch_stand_in import Tensor, Torch

TORCH_STREAM, OTHER = 0x70, 0x90


class Producer:
    """An array of a DLPack library on ``cuda:0``; ``asked`` are the streams on which its data had to be ready."""

    def __init__(self, *shape: int) -> None:
        self.array, self.asked = np.ones(shape, np.float32), list[Any]()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0

    def __dlpack__(self, stream: Any = None) -> Any:
        self.asked.append(stream)
        capsule = self.array.__dlpack__()
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        dlpack._Tensor.from_address(get(capsule, b"dltensor") or 0).device_type = 2
        return capsule


class CupyArray(Producer):
    pass


CupyArray.__module__ = "cupy"


class CupyStream:
    def __init__(self, pointer: int, ordinal: int) -> None:
        assert (pointer, ordinal) == (5, 0)

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None: ...


@pytest.fixture
def torch(monkeypatch: pytest.MonkeyPatch) -> Torch:
    made = Torch()
    made.stream = TORCH_STREAM
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.setattr(guards, "compiler_guard", lambda: None)
    return made


@pytest.fixture
def cupy(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """CuPy's current stream, as ``ptr``."""

    def empty(nbytes: int, dtype: Any) -> SimpleNamespace:
        array = np.empty(nbytes, dtype)
        return SimpleNamespace(array=array, data=SimpleNamespace(ptr=array.ctypes.data))

    current, module = SimpleNamespace(ptr=TORCH_STREAM), ModuleType("cupy")
    cuda = {"get_current_stream": lambda ordinal: current, "Device": nullcontext, "ExternalStream": CupyStream}
    module.__dict__.update(cuda=SimpleNamespace(**cuda), empty=empty)
    monkeypatch.setitem(sys.modules, "cupy", module)
    return current


@pytest.fixture
def dispatcher(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Dispatcher:
    mocks.native_library()
    arena.of_thread().free()
    monkeypatch.setattr(Device, "memory", "cuda:0")
    return Dispatcher(mocks.write_library(tmp_path))


def tensor(*shape: int) -> Tensor:
    return Tensor(np.ones(shape, np.float32), SimpleNamespace(type="cuda", index=0))


def launched(plan: Plan) -> tuple[int | None, dict[int, list[int]]]:
    """Stream of the last launch; by stream, the streams on which its workspace was allocated."""
    state = plan._local.state
    assert (state.frame.stream or 0) == state.stream
    return state.stream, {stream: kept.owner.streams for (_, stream), kept in state.arenas._found.items()}


@pytest.mark.parametrize("stream", [None, OTHER, 0])
def test_everything_of_a_launch_is_on_its_stream(dispatcher: Dispatcher, torch: Torch, stream: int | None) -> None:
    a, b, c = tensor(3, 4), tensor(4, 5), tensor(3, 5)
    wanted = TORCH_STREAM if stream is None else stream
    for _ in range(3):  # checked in full, then recognised
        made = dispatcher.gemm(a, b, stream=stream)
        assert made.streams == [wanted] and (made.array == 4).all()
    assert launched(dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr", split_k=0))) == (wanted, {wanted: [wanted]})
    made = dispatcher.gemm(a, b, c, beta=2.0, stream=stream)
    assert made.streams == [wanted, wanted] and (made.array == 6).all()  # allocated, C copied
    assert torch.stream == TORCH_STREAM


def test_groups_follow_the_same_rule(
    tmp_path: Path, dispatcher: Dispatcher, torch: Torch, cupy: SimpleNamespace
) -> None:
    groups = Dispatcher(mocks.write_library(tmp_path / "groups", "MOCK_VARIANTS"))
    made = groups.grouped_gemm([tensor(3, 4)] * 2, [tensor(4, 5)] * 2, stream=OTHER)
    assert [one.streams for one in made] == [[OTHER]] * 2
    cupy.ptr = OTHER
    with pytest.raises(ArrayError, match="current streams differ"):
        groups.grouped_gemm([tensor(3, 4)], [CupyArray(4, 5)])


def test_libraries_with_different_streams_need_one(dispatcher: Dispatcher, torch: Torch, cupy: SimpleNamespace) -> None:
    a, b, out = tensor(3, 4), CupyArray(4, 5), tensor(3, 5)
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr", split_k=0))
    calls: list[Any] = [dispatcher.gemm, plan, lambda *given, **options: plan.bind(*given, **options)()]
    for call in calls:
        for operands in ((a, b), (CupyArray(3, 4), tensor(4, 5))):
            cupy.ptr = TORCH_STREAM
            assert call(*operands, out=out) is out
            cupy.ptr = OTHER
            with pytest.raises(
                ArrayError, match=r"current streams differ: 0x90 of cupy, 0x70 of torch; .* pass stream="
            ):
                call(*operands, out=out)
            b.asked.clear()
            call(*operands, out=out, stream=5)
            assert {*b.asked} <= {5}


def test_producers_make_data_ready_on_the_stream_of_the_launch(dispatcher: Dispatcher, torch: Torch) -> None:
    a, b, out = Producer(3, 4), tensor(4, 5), tensor(3, 5)
    plan = dispatcher.plan(GemmProblem(3, 5, 4, layout="rrr", split_k=0))
    calls: list[Any] = [dispatcher.gemm, plan]
    for call in calls:
        call(a, b, out=out)
        assert launched(plan)[0] == TORCH_STREAM and {*a.asked} == {TORCH_STREAM}
        a.asked.clear()
        call(a, b, out=out, stream=OTHER)
        assert launched(plan)[0] == OTHER and {*a.asked} == {OTHER}
        a.asked.clear()


@pytest.mark.parametrize(
    ("producer", "stream", "fits"), [(None, 7, True), (7, 7, True), (1, 0, True), (7, None, True), (7, 8, False)]
)
def test_streams_of_the_cuda_array_interface(producer: int | None, stream: int | None, fits: bool) -> None:
    interface = {"data": (4096, False), "version": 3, "shape": (2, 3), "typestr": "<f4", "stream": producer}
    array = SimpleNamespace(__cuda_array_interface__=interface)
    with nullcontext() if fits else pytest.raises(ArrayError, match=r"a is made ready on stream 7, .*; pass stream=7"):
        assert view(array, "a", stream).pointer == 4096


def test_cupy_works_on_a_stream_of_its_device(monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[Any] = []

    class Entered:
        def __init__(self, *what: Any) -> None:
            self.what = what

        def __enter__(self) -> None:
            entered.append(self.what)

        def __exit__(self, *error: object) -> None:
            entered.append("left")

    class Stream(Entered):
        null = Entered("null")

    module = ModuleType("cupy")
    current = SimpleNamespace(get_current_stream=lambda ordinal: SimpleNamespace(ptr=3), Device=Entered)
    module.__dict__.update(cuda=SimpleNamespace(**vars(current), Stream=Stream, ExternalStream=Entered))
    monkeypatch.setitem(sys.modules, "cupy", module)
    for stream, expected in ((3, []), (None, []), (9, [(1,), (9, 1)]), (0, [(1,), ("null",)])):
        with on_stream(stream, "cupy", "cuda:1"):
            assert entered == expected
        assert entered == expected + ["left"] * len(expected)
        entered.clear()
