"""Streams that are held up on the device: work on a wrong stream comes too early, and leaves wrong numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch")

from places import CURRENT, DEVICE, sleep, synchronize  # noqa: E402

from conftest import LIBRARY, NEEDS_DISPATCHER  # noqa: E402

dispatch = pytest.importorskip("kernelwright.dispatch")
pytestmark = NEEDS_DISPATCHER

M, N, K = 256, 384, 512


@pytest.fixture(scope="module")
def dispatcher() -> dispatch.Dispatcher:
    return dispatch.Dispatcher([dispatch.KernelLibrary.load(LIBRARY.parent)], device=DEVICE)


@contextmanager
def on(stream: torch.cuda.Stream) -> Iterator[None]:
    """torch's current stream of the device under test; the current device stays."""
    with torch.cuda.stream(stream), torch.cuda.device(CURRENT):
        yield


class Operands:
    """A (M, K), B (K, N) and C (M, N), which get their values when a stream that is held up reaches them."""

    def __init__(self, stream: torch.cuda.Stream) -> None:
        shapes = ((M, K), (N, K), (M, N))
        # Kept: memory given back to the allocator could be filled anew before the held-up stream reads it.
        self.values = values = [torch.randn(*shape, device=DEVICE).bfloat16() for shape in shapes]
        self.a, self.b, self.c = (torch.full_like(value, float("nan")) for value in values)
        self.b = self.b.T
        self.out = torch.full((M, N), float("nan"), device=DEVICE, dtype=torch.bfloat16)
        synchronize()
        self.product = values[0].double() @ values[1].double().T
        self.sum = 2 * self.product - values[2].double()
        synchronize()
        with on(stream):
            sleep()
            for made, value in zip((self.a, self.b.T, self.c), values, strict=True):
                made.copy_(value)


def close(value: torch.Tensor, expected: torch.Tensor) -> bool:
    synchronize()
    return bool(((value.double() - expected).norm() <= 1e-2 * expected.norm()).item())


@pytest.fixture
def streams() -> list[torch.cuda.Stream]:
    return [torch.cuda.Stream(DEVICE) for _ in range(3)]


def test_another_stream_comes_too_early(dispatcher: dispatch.Dispatcher, streams: list[torch.cuda.Stream]) -> None:
    """The control: the delay is long enough for the tests below to fail."""
    for seen in (False, True):  # the first time, loading a kernel or allocating memory may wait for the device
        made = Operands(streams[0])
        dispatcher.gemm(made.a, made.b, out=made.out, stream=streams[1].cuda_stream)
        assert close(made.out, made.product) is False or not seen


def test_launches_follow_the_current_stream(dispatcher: dispatch.Dispatcher, streams: list[torch.cuda.Stream]) -> None:
    made = [Operands(stream) for stream in streams * 2]
    results = []
    for stream, each in zip(streams * 2, made, strict=True):
        with on(stream):
            results.append((each, dispatcher.gemm(each.a, each.b)))
            results.append((each, dispatcher.gemm(each.a, each.b, out=each.out)))
    assert all(close(out, each.product) for each, out in results)


def test_everything_is_on_the_stream_that_is_given(
    dispatcher: dispatch.Dispatcher, streams: list[torch.cuda.Stream]
) -> None:
    """The result is allocated and C copied there, while another stream is current."""
    for stream in streams * 2:
        made = Operands(stream)
        out = dispatcher.gemm(made.a, made.b, made.c, alpha=2.0, beta=-1.0, stream=stream.cuda_stream)
        assert close(out, made.sum)


def test_workspaces_of_streams_are_apart(dispatcher: dispatch.Dispatcher, streams: list[torch.cuda.Stream]) -> None:
    """A sum over a long k, of slices in a workspace: launches wait on two streams, then run at the same time."""
    first, second = (
        [torch.randn(*shape, device=DEVICE).bfloat16() for shape in ((64, 65536), (128, 65536))] for _ in range(2)
    )
    plan = dispatcher.plan(dispatch.GemmProblem(64, 128, 65536, "bf16", layout="rcr", split_k=4))
    assert plan.workspace_bytes > 0
    outs = [torch.empty(64, 128, device=DEVICE, dtype=torch.bfloat16) for _ in range(20)]
    synchronize()
    for stream in streams[:2]:
        with on(stream):
            sleep()
    for number, out in enumerate(outs):
        a, b = (first, second)[number % 2]
        plan(a, b.T, out=out, stream=streams[number % 2].cuda_stream)
    for number, out in enumerate(outs):
        a, b = (first, second)[number % 2]
        assert close(out, a.double() @ b.double().T)


def test_bound_plans_stay_on_their_stream(dispatcher: dispatch.Dispatcher, streams: list[torch.cuda.Stream]) -> None:
    made = Operands(streams[0])
    with on(streams[0]):
        bound = dispatcher.plan(dispatch.GemmProblem(M, N, K, "bf16", layout="rcr")).bind(made.a, made.b, out=made.out)
    with on(streams[1]):
        bound()
    assert close(made.out, made.product)


def test_addresses_in_host_memory_are_refused(dispatcher: dispatch.Dispatcher, monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = torch.randn(M, K, device=DEVICE).bfloat16(), torch.randn(N, K, device=DEVICE).bfloat16()
    out = torch.full((M, N), float("nan"), device=DEVICE, dtype=torch.bfloat16)
    pinned, plain = a.cpu().pin_memory(), a.cpu()
    plan = dispatcher.plan(dispatch.GemmProblem(M, N, K, "bf16", layout="rcr"))
    synchronize()
    for host in (plain, pinned):
        for call in (
            lambda at: plan(at, b.data_ptr(), out=out.data_ptr()),
            lambda at: plan.bind(at, b.data_ptr(), out=0),
        ):
            with pytest.raises(
                dispatch.ArrayError, match=rf"A is at 0x[0-9a-f]+, in host memory; .*memory of {DEVICE}"
            ):
                call(host.data_ptr())
    plan(a.data_ptr(), b.data_ptr(), out=out.data_ptr())
    assert close(out, a.double() @ b.double().T)
    out.fill_(float("nan"))
    bound = plan.bind(a.data_ptr(), b.data_ptr(), out=out.data_ptr())
    synchronize()
    bound()
    assert close(out, a.double() @ b.double().T)
    monkeypatch.setenv("KERNELWRIGHT_ADDRESS_CHECK", "off")
    out.fill_(float("nan"))
    synchronize()
    plan.bind(pinned.data_ptr(), b.data_ptr(), out=out.data_ptr())()  # CUDA maps pinned memory at the same address
    assert close(out, a.double() @ b.double().T)
