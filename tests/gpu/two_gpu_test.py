"""Two GPUs in one process: a dispatcher works on its own device, whichever is current, or refuses with both ordinals.

After every test both devices still compute what they computed alone. $KERNELWRIGHT_GPU_SECONDS: length of the run of
two threads (60).
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from raw_abi import OK, RUNTIME_MISSING, Library  # noqa: E402
from two_gpu_work import every_work, poison, wait  # noqa: E402

from conftest import LIBRARY, NEEDS_DISPATCHER  # noqa: E402

dispatch = pytest.importorskip("kernelwright.dispatch")
pytestmark = [
    *NEEDS_DISPATCHER,
    pytest.mark.skipif(not torch.cuda.is_available() or torch.cuda.device_count() < 2, reason="needs two GPUs"),
    pytest.mark.parametrize(("own", "current"), [(1, 0), (0, 1)]),
]
SECONDS = float(os.environ.get("KERNELWRIGHT_GPU_SECONDS", "60"))


@cache
def dispatcher(ordinal: int) -> Any:
    return dispatch.Dispatcher([dispatch.KernelLibrary.load(LIBRARY.parent)], device=f"cuda:{ordinal}")


@cache
def inputs(ordinal: int) -> tuple[Any, Any, Any]:
    """A, B and C of small whole numbers, the same on every device: products are exact."""
    generator = torch.Generator().manual_seed(0)
    made = (torch.randint(-3, 4, (512, 512), generator=generator).bfloat16() for _ in range(3))
    a, b, c = (one.to(f"cuda:{ordinal}") for one in made)
    return a, b.T, c


def right(out: Any, ordinal: int, c: Any = None) -> bool:
    a, b, _ = inputs(ordinal)
    wait(ordinal)
    expected = a.double() @ b.double() + (0 if c is None else c.double())
    return str(out.device) == f"cuda:{ordinal}" and torch.equal(out.double(), expected.bfloat16().double())


@pytest.fixture(autouse=True)
def both_devices_work(own: int, current: int, gpu: None) -> Iterator[None]:
    """The other device is current during the test; afterwards it still is, and both devices compute."""
    torch.cuda.set_device(current)
    yield
    assert torch.cuda.current_device() == current
    for ordinal in (own, current):
        a, b, _ = inputs(ordinal)
        assert right(dispatcher(ordinal).gemm(a, b), ordinal)
    torch.cuda.set_device(0)


class OnlyDlpack:
    """A tensor that shows nothing but DLPack."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor

    def __dlpack__(self, stream: int | None = None) -> Any:
        with torch.cuda.device(self._tensor.device):
            return self._tensor.__dlpack__(stream=stream)

    def __dlpack_device__(self) -> tuple[int, int]:
        kind, ordinal = self._tensor.__dlpack_device__()
        return int(kind), int(ordinal)


class OnlyCuda:
    """A tensor that shows nothing but ``__cuda_array_interface__``, which does not tell the device."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self.__cuda_array_interface__ = tensor.__cuda_array_interface__


def as_cupy(tensor: Any) -> Any:
    cupy = pytest.importorskip("cupy")
    with cupy.cuda.Device(tensor.device.index):
        return cupy.asarray(tensor)


SOURCES: dict[str, Callable[[Any], Any]] = {
    "torch": lambda tensor: tensor,
    "cupy": as_cupy,
    "dlpack": OnlyDlpack,
    "cuda array interface": OnlyCuda,
}


def halves(ordinal: int) -> tuple[Any, Any, Any, Any]:
    """A, B, C and a result of fp16, which every source knows."""
    a, b, c = inputs(ordinal)
    return a.half(), b.half(), c.half(), torch.full((512, 512), float("nan"), device=a.device, dtype=torch.float16)


def test_result_is_allocated_on_the_dispatchers_device(own: int, current: int) -> None:
    a, b, c = inputs(own)
    before = torch.cuda.memory_allocated(current), torch.cuda.memory_allocated(own)
    out = dispatcher(own).gemm(a, b)
    again = dispatcher(own).gemm(a, b)  # by the remembered call
    added = dispatcher(own).gemm(a, b, c, beta=1.0)
    assert right(out, own) and right(again, own) and right(added, own, c)
    assert torch.cuda.memory_allocated(current) == before[0]
    assert torch.cuda.memory_allocated(own) >= before[1] + 3 * out.nbytes


def test_remembered_calls_are_those_of_their_device(own: int, current: int) -> None:
    for ordinal in (own, current, own, current):
        a, b, _ = inputs(ordinal)
        assert right(dispatcher(ordinal).gemm(a, b), ordinal)
        with pytest.raises(dispatch.ArrayError, match=f"cuda:{ordinal}.*cuda:{1 - ordinal}"):
            dispatcher(1 - ordinal).gemm(a, b)


def test_workspace_is_allocated_on_the_dispatchers_device(own: int, current: int) -> None:
    a, b, _ = inputs(own)
    plan = dispatcher(own).plan(dispatch.GemmProblem(512, 512, 512, dtype="bf16", layout="rcr", split_k=4))
    assert plan.workspace_bytes > 0
    before = torch.cuda.memory_allocated(current), torch.cuda.memory_allocated(own)
    out = torch.empty(512, 512, device=a.device, dtype=a.dtype)
    assert right(plan(a, b, out=out), own)
    assert torch.cuda.memory_allocated(current) == before[0]
    assert torch.cuda.memory_allocated(own) >= before[1] + plan.workspace_bytes + out.nbytes


def test_a_given_workspace_must_be_on_the_device(own: int, current: int) -> None:
    a, b, _ = inputs(own)
    plan = dispatcher(own).plan(dispatch.GemmProblem(512, 512, 512, dtype="bf16", layout="rcr", split_k=4))
    out = torch.empty(512, 512, device=a.device, dtype=a.dtype)
    near, far = (torch.empty(plan.workspace_bytes, dtype=torch.uint8, device=f"cuda:{at}") for at in (own, current))
    assert right(plan(a, b, out=out, workspace=near.data_ptr()), own)
    with pytest.raises(dispatch.ArrayError, match=f"workspace is on cuda:{current}; allowed for this plan: cuda:{own}"):
        plan(a, b, out=out, workspace=far.data_ptr())


@pytest.mark.parametrize("source", SOURCES)
def test_every_kind_of_array(own: int, current: int, source: str) -> None:
    a, b, c, out = halves(own)
    wait(own)
    shown_a, shown_b, shown_c, shown_out = map(SOURCES[source], (a, b, c, out))
    assert dispatcher(own).gemm(shown_a, shown_b, shown_c, out=shown_out, beta=1.0) is shown_out
    wait(own)
    assert torch.equal(out.double(), (a.double() @ b.double() + c.double()).half().double())
    if source in ("dlpack", "cuda array interface"):
        with pytest.raises(dispatch.ArrayError, match="pass out="):
            dispatcher(own).gemm(shown_a, shown_b)
        return
    made = dispatcher(own).gemm(shown_a, shown_b, shown_c, beta=1.0)
    wait(own)
    at = made.device.index if source == "torch" else made.device.id
    with torch.cuda.device(own):
        assert at == own and torch.equal(torch.as_tensor(made, device=a.device), out)


@pytest.mark.parametrize("operand", ["a", "b", "c", "out", "all"])
@pytest.mark.parametrize("source", SOURCES)
def test_operands_of_the_other_device_are_refused(own: int, current: int, source: str, operand: str) -> None:
    near, far = (dict(zip(("a", "b", "c", "out"), halves(ordinal), strict=True)) for ordinal in (own, current))
    wait(own)
    wait(current)
    given = {name: SOURCES[source]((far if operand in (name, "all") else near)[name]) for name in near}
    plan = dispatcher(own).plan(
        dispatch.GemmProblem(512, 512, 512, dtype="fp16", dtype_c="fp16", layout="rcr", beta=1.0)
    )
    attempts = {
        "gemm": lambda: dispatcher(own).gemm(given["a"], given["b"], given["c"], given["out"], beta=1.0),
        "plan": lambda: plan(given["a"], given["b"], given["c"], given["out"]),
        "bind": lambda: plan.bind(given["a"], given["b"], given["c"], given["out"]),
    }
    for name, attempt in attempts.items():
        with pytest.raises(dispatch.ArrayError) as refused:
            attempt()
        assert f"cuda:{own}" in str(refused.value) and f"cuda:{current}" in str(refused.value), name
    wait(current)
    assert far["out"].isnan().all() and near["out"].isnan().all()


def test_groups_of_the_other_device_are_refused(own: int, current: int) -> None:
    (a, b, _), (far_a, far_b, _) = inputs(own), inputs(current)
    outs = dispatcher(own).grouped_gemm([a, a], [b, b])
    assert right(outs[0], own) and right(outs[1], own)
    for given in (([a, far_a], [b, far_b]), ([a, a], [b, far_b]), ([far_a, far_a], [far_b, far_b])):
        with pytest.raises(dispatch.ArrayError) as refused:
            dispatcher(own).grouped_gemm(*given)
        assert f"cuda:{own}" in str(refused.value) and f"cuda:{current}" in str(refused.value)


def test_streams_of_the_other_device_are_refused(own: int, current: int) -> None:
    a, b, _ = inputs(own)
    near, far = (torch.cuda.Stream(f"cuda:{ordinal}") for ordinal in (own, current))
    out = torch.empty(512, 512, device=a.device, dtype=a.dtype)
    for split_k in (1, 4):
        plan = dispatcher(own).plan(dispatch.GemmProblem(512, 512, 512, dtype="bf16", layout="rcr", split_k=split_k))
        assert right(plan(a, b, out=poison(out), stream=wait(own) or near.cuda_stream), own)
        with pytest.raises(dispatch.KernelwrightError, match=f"device {current} .*device {own}"):
            plan(a, b, out=out, stream=far.cuda_stream)
        with pytest.raises(dispatch.KernelwrightError, match=f"device {current} .*device {own}"):
            plan.bind(a, b, out=out, stream=far.cuda_stream)()
    with pytest.raises(dispatch.KernelwrightError, match=f"device {current} .*device {own}"):
        dispatcher(own).gemm(a, b, stream=far.cuda_stream)
    with pytest.raises(dispatch.KernelwrightError, match=f"device {current} .*device {own}"):
        dispatcher(own).grouped_gemm([a], [b], stream=far.cuda_stream)


def test_capturing_streams_of_the_other_device_are_refused(own: int, current: int) -> None:
    """CUDA would put the kernel into the graph, and run it on the other device. The capture goes on."""
    a, b, _ = inputs(own)
    out, graph = torch.empty(512, 512, device=a.device, dtype=a.dtype), ctypes.c_void_p()
    plan = dispatcher(own).plan(dispatch.GemmProblem(512, 512, 512, dtype="bf16", layout="rcr"))
    assert right(plan(a, b, out=out), own)
    cudart, far = ctypes.CDLL("libcudart.so"), ctypes.c_void_p(torch.cuda.Stream(f"cuda:{current}").cuda_stream)
    assert cudart.cudaStreamBeginCapture(far, 1) == 0
    try:
        with pytest.raises(dispatch.KernelwrightError, match=f"device {current} .*device {own}"):
            plan(a, b, out=out, stream=far.value)
    finally:
        ended = cudart.cudaStreamEndCapture(far, ctypes.byref(graph))
    assert ended == 0
    assert right(plan(a, b, out=poison(out)), own)


def test_the_current_stream_is_that_of_the_dispatchers_device(own: int, current: int) -> None:
    a, b, _ = inputs(own)
    late, out = torch.zeros_like(a), torch.empty_like(a)
    dispatcher(own).gemm(late, b, out=out)
    wait(own)
    with torch.cuda.stream(torch.cuda.Stream(f"cuda:{own}")):
        torch.cuda._sleep(50_000_000)
        late.copy_(a)
        with torch.cuda.device(current):
            dispatcher(own).gemm(late, b, out=out)
    assert right(out, own)


def test_absent_devices_are_refused_and_the_current_one_stays(own: int, current: int) -> None:
    kernel = next(kernel for kernel in Library(LIBRARY) if kernel.descriptor.op == 1 and not kernel.traits.num_d)
    a, out = (torch.zeros(256, 256, device=f"cuda:{own}", dtype=torch.float32) for _ in range(2))
    plan = kernel.plan(kernel.problem(64, 64, 64))
    for absent in (-1, 7, 99):
        assert kernel.launch(plan, a.data_ptr(), a.data_ptr(), 0, out.data_ptr(), 0, absent) == RUNTIME_MISSING
        assert f"device {absent} cannot be used" in kernel.last_error()
        assert torch.cuda.current_device() == current
    assert kernel.launch(plan, a.data_ptr(), a.data_ptr(), 0, out.data_ptr(), 0, own) == OK
    wait(own)
    with pytest.raises(dispatch.DeviceError, match="cuda:99"):
        _ = dispatch.Device("cuda:99").archs


def test_a_device_that_was_never_used_stays_so(own: int, current: int) -> None:
    """In a process where nothing was ever current, in its first thread and in a new one."""
    script = Path(__file__).with_name("unused_device.py")
    command = [sys.executable, str(script), str(LIBRARY), str(own), str(current)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    expected = {"before": False, "launches": [[OK, None], [OK, None]], "after": False, "right": True}
    assert json.loads(done.stdout.splitlines()[-1]) == expected


def test_every_kernel_on_both_devices_at_once(own: int, current: int) -> None:
    """Two threads, each with the other's device current, for $KERNELWRIGHT_GPU_SECONDS."""
    if own == 0:
        pytest.skip("one run serves both directions")
    library = dispatch.KernelLibrary.load(LIBRARY.parent)
    works = {ordinal: every_work(library, ordinal) for ordinal in (0, 1)}
    alone = [work.run() for work in works[0]]
    for work, expected in zip(works[1], alone, strict=True):
        assert torch.equal(work.run(), expected), f"{work.name}: the devices differ"
    assert len({work.name for work in works[0]}) >= len(library.kernels) > 0
    rounds, wrong, end = {0: 0, 1: 0}, [], time.monotonic() + SECONDS
    start = threading.Barrier(2)

    def loop(ordinal: int) -> None:
        try:
            torch.cuda.set_device(1 - ordinal)
            start.wait()
            while time.monotonic() < end:
                for number, work in enumerate(works[ordinal]):
                    if not torch.equal(work.run(), alone[number]):
                        wrong.append(f"{work.name} on device {ordinal}, round {rounds[ordinal]}")
                    if torch.cuda.current_device() != 1 - ordinal:
                        wrong.append(f"{work.name} on device {ordinal} changed the current device")
                rounds[ordinal] += 1
        except Exception as error:
            wrong.append(f"device {ordinal}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=loop, args=(ordinal,)) for ordinal in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, "\n".join(wrong[:20])
    assert min(rounds.values()) >= 1
    launches = {ordinal: count * len(works[ordinal]) for ordinal, count in rounds.items()}
    print(f"launches of {len(works[0])} calls by device in {SECONDS:.0f} s: {launches}")
