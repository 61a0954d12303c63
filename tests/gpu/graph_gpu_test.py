"""Captures of CUDA graphs: a launch gets a workspace of the graph's own memory, or is refused.

The stream of a capture has launched before, so that its launches share a workspace, which is freed between capture and
replay, and given to others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
dispatch = pytest.importorskip("kernelwright.dispatch")
kernelwright_torch = pytest.importorskip("kernelwright.torch")

from places import DEVICE, synchronize  # noqa: E402

from conftest import HERE, LIBRARY, NEEDS_DISPATCHER  # noqa: E402
from kernelwright.dispatch.core import workspace  # noqa: E402
from kernelwright.dispatch.core.plan import OperationPlan  # noqa: E402
from kernelwright.torch.road import ROAD  # noqa: E402

pytestmark = NEEDS_DISPATCHER
ROOT = HERE.parents[1]
FOLDERS = {
    "gemm": LIBRARY.parent,
    "conv": Path(os.environ.get("KERNELWRIGHT_GPU_CONV", ROOT / ".gpu/conv/sm_90a")),
    "attention": Path(os.environ.get("KERNELWRIGHT_GPU_ATTENTION", ROOT / ".gpu/attention/libattention.so")).parent,
}
SPLIT = dispatch.GemmProblem(128, 128, 65536, dtype="bf16", layout="rcr", split_k=4)

Call = Callable[[], Any]  # launches, and returns a tensor or several


@pytest.fixture
def dispatcher(request: pytest.FixtureRequest, gpu: None) -> Iterator[Any]:
    """A dispatcher of the library that the test names; in use for torch's operators."""
    folder = FOLDERS[request.param]
    if not (folder / "manifest.json").exists():
        pytest.skip(f"{folder} has no library with a manifest")
    torch.manual_seed(0)
    made = dispatch.Dispatcher([dispatch.KernelLibrary.load(folder)], device=DEVICE)
    kernelwright_torch.use(made)
    yield made
    kernelwright_torch.forget(DEVICE)


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The addresses of workspaces that single launches own."""
    addresses, of_launch = [], OperationPlan._of_launch

    def noted(plan: Any, *arguments: Any) -> int:
        addresses.append(of_launch(plan, *arguments))
        return addresses[-1]

    monkeypatch.setattr(OperationPlan, "_of_launch", noted)
    return addresses


def drawn(*shape: int) -> Any:
    return torch.randn(*shape, device=DEVICE).bfloat16()


def replayed(call: Call, inputs: list[Any]) -> list[Any]:
    """Results of a graph of the call: captured, given other inputs, replayed; nothing else is written."""
    stream, graph = torch.cuda.Stream(DEVICE), torch.cuda.CUDAGraph()
    with torch.cuda.device(DEVICE), torch.cuda.stream(stream):
        for _ in range(2):
            call()
        synchronize()
        with torch.cuda.graph(graph, stream=stream):
            outputs = call()
        call()  # by what launches share again
        with torch.no_grad():
            for one in inputs:
                one.copy_(torch.randn_like(one))
        dispatch.trim()
        others = [torch.full((1 << 20,), float("nan"), device=DEVICE) for _ in range(64)]
        synchronize()
        for _ in range(2):
            graph.replay()
        synchronize()
        assert all(one.isnan().all() for one in others)
        call()
        synchronize()
    return [one.double() for one in (outputs if isinstance(outputs, tuple) else (outputs,))]


def same(actual: list[Any], wanted: list[Any]) -> bool:
    return all((one - other).norm() <= 2e-2 * other.norm() for one, other in zip(actual, wanted, strict=True))


@pytest.mark.parametrize("dispatcher", ["gemm"], indirect=True)
@pytest.mark.parametrize("way", ["plan", "gemm", "operator"])
def test_products(dispatcher: Any, own: list[int], way: str) -> None:
    a, b = drawn(128, 65536), drawn(128, 65536)
    plan, out = dispatcher.plan(SPLIT), drawn(128, 128)
    calls: dict[str, Call] = {
        "plan": lambda: plan(a, b.t(), out=out),
        "gemm": lambda: dispatcher.gemm(a, b.t(), split_k=4),
        "operator": lambda: kernelwright_torch.gemm(a, b.t()),
    }
    assert plan.workspace_bytes > 0 and dispatcher.plan_gemm(a, b.t()).workspace_bytes > 0
    outputs = replayed(calls[way], [a, b])
    # Operators never share; the native road launches all but the first itself, and allocates from torch.
    launches = {"plan": 1, "gemm": 1, "operator": 5 if ROAD.why_not else 1}
    assert len(own) == launches[way] and same(outputs, [a.double() @ b.double().t()])


@pytest.mark.parametrize("dispatcher", ["gemm"], indirect=True)
def test_graphs_of_a_compiled_function(dispatcher: Any, own: list[int]) -> None:
    """torch's compiler checks that nothing but results lives on in the memory of its graphs."""
    a, b = drawn(128, 65536), drawn(128, 65536)
    compiled = torch.compile(lambda a, b: 2 * kernelwright_torch.gemm(a, b.t()), mode="reduce-overhead", fullgraph=True)
    with torch.cuda.device(DEVICE), torch.no_grad():
        for _ in range(4):
            a.copy_(torch.randn_like(a))
            product = compiled(a, b).double()
            assert same([product], [2 * (a.double() @ b.double().t())])
    assert own
    torch._dynamo.reset()


@pytest.mark.parametrize("dispatcher", ["conv"], indirect=True)
def test_convolutions_and_their_gradients(dispatcher: Any, own: list[int]) -> None:
    x, w, dy = drawn(4, 64, 28, 28), drawn(64, 64, 3, 3), drawn(4, 64, 28, 28)
    x, w, dy = (one.contiguous(memory_format=torch.channels_last) for one in (x, w, dy))

    def step(conv: Any, *operands: Any) -> tuple[Any, ...]:
        first, second = (one.detach().requires_grad_() for one in operands[:2])
        y = conv(first, second, padding=1)
        return y.detach(), *torch.autograd.grad(y, (first, second), operands[2])

    outputs = replayed(lambda: step(kernelwright_torch.conv2d, x, w, dy), [x, w, dy])
    exact = step(torch.nn.functional.conv2d, x.double(), w.double(), dy.double())
    assert own and same(outputs, list(exact))


@pytest.mark.parametrize("dispatcher", ["attention"], indirect=True)
@pytest.mark.parametrize("rows", [1, 300])
def test_attention_and_its_gradients(dispatcher: Any, own: list[int], rows: int) -> None:
    """One query meets keys in parts; gradients leave sums for later stages."""
    q, k, v, do = drawn(2, 8, rows, 128), drawn(2, 8, 5000, 128), drawn(2, 8, 5000, 128), drawn(2, 8, rows, 128)

    def step(attention: Any, *operands: Any) -> Any:
        if rows == 1:
            return attention(*operands[:3])
        given = [one.detach().requires_grad_() for one in operands[:3]]
        out = attention(*given)
        return out.detach(), *torch.autograd.grad(out, given, operands[3])

    outputs = replayed(lambda: step(kernelwright_torch.scaled_dot_product_attention, q, k, v, do), [q, k, v, do])
    exact = step(torch.nn.functional.scaled_dot_product_attention, *(one.double() for one in (q, k, v, do)))
    assert own and same(outputs, list(exact) if isinstance(exact, tuple) else [exact])


@pytest.mark.parametrize("dispatcher", ["gemm"], indirect=True)
def test_addresses_alone_need_a_bound_plan(dispatcher: Any, own: list[int]) -> None:
    a, b, out, other = drawn(128, 65536), drawn(128, 65536), drawn(128, 128), drawn(128, 128)
    plan, stream = dispatcher.plan(SPLIT), torch.cuda.Stream(DEVICE)
    where = a.data_ptr(), b.data_ptr()
    with torch.cuda.device(DEVICE), torch.cuda.stream(stream):
        bound = plan.bind(a, b.t(), out=out)
        bound()
        plan(a, b.t(), out=other)
        out.fill_(float("nan"))
        synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream):
            with pytest.raises(dispatch.ArrayError, match=r"is being captured .* bind the plan before the capture"):
                plan(*where, out=other.data_ptr(), stream=stream.cuda_stream)
            bound()
        graph.replay()
        synchronize()
    assert not own and same([out.double()], [a.double() @ b.double().t()])


def test_a_capture_is_seen_without_being_ended(gpu: None) -> None:
    """By the driver that torch has loaded; on any stream but the default ones."""
    assert workspace.capture_status("cuda") is not None
    stream, x = torch.cuda.Stream(DEVICE), torch.ones(4, device=DEVICE)
    synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.device(DEVICE):
        with torch.cuda.graph(graph, stream=stream):
            assert workspace.is_capturing(stream.cuda_stream, DEVICE)
            assert not workspace.is_capturing(torch.cuda.Stream(DEVICE).cuda_stream, DEVICE)
            assert not workspace.is_capturing(0, DEVICE)
            x += 1
        assert not workspace.is_capturing(stream.cuda_stream, DEVICE)
        graph.replay()
    synchronize()
    assert x.tolist() == [2.0] * 4
