"""``kernelwright.torch`` on the GPU: numbers and gradients, streams, CUDA graphs, ``torch.compile`` and autocast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from places import DEVICE, on_new_stream, sleep, synchronize  # noqa: E402

from conftest import LIBRARY, NEEDS_DISPATCHER  # noqa: E402

dispatch = pytest.importorskip("kernelwright.dispatch")
kernelwright_torch = pytest.importorskip("kernelwright.torch")

from kernelwright.torch import gemm, linear  # noqa: E402
from kernelwright.torch.operators.gemm import OPERATOR  # noqa: E402
from kernelwright.torch.testdata import references  # noqa: E402
from kernelwright.torch.testdata.references import Case, by_kernel  # noqa: E402

pytestmark = NEEDS_DISPATCHER
BF16 = 2.0**-8  # the rounding of a result


@pytest.fixture(scope="module")
def dispatcher(gpu: None) -> dispatch.Dispatcher:
    return dispatch.Dispatcher([dispatch.KernelLibrary.load(LIBRARY.parent)], device=DEVICE)


@pytest.fixture(autouse=True)
def in_use(dispatcher: dispatch.Dispatcher) -> Iterator[None]:
    kernelwright_torch.use(dispatcher)
    torch.manual_seed(0)
    yield
    kernelwright_torch.forget(DEVICE)
    torch._dynamo.reset()


def rows(*shape: int, dtype: Any = torch.bfloat16) -> Any:
    return torch.randn(*shape, device=DEVICE).to(dtype).requires_grad_()


def columns(*shape: int, dtype: Any = torch.bfloat16) -> Any:
    return torch.randn(*shape[:-2], shape[-1], shape[-2], device=DEVICE).to(dtype).mT.requires_grad_()


@pytest.mark.parametrize("make_a", [rows, columns])
@pytest.mark.parametrize("make_b", [rows, columns])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products(make_a: Any, make_b: Any, dtype: Any) -> None:
    case = Case(make_a(384, 512, dtype=dtype), make_b(512, 640, dtype=dtype), alpha=0.5)
    references.check(case, by_kernel, BF16)


@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "fast_gelu", "tanh"])
def test_a_bias_and_an_activation(activation: str) -> None:
    references.check(Case(rows(384, 512), columns(512, 640), [rows(640)], activation=activation), by_kernel, BF16)


def test_factors_and_an_activation() -> None:
    ds = [rows(384, 640), rows(640)]
    case = Case(rows(384, 512), columns(512, 640), ds, "multiply", activation="silu", alpha=1 / 16)
    references.check(case, by_kernel, BF16)


def test_a_batch_with_one_b() -> None:
    references.check(Case(rows(3, 128, 512), columns(512, 640)), by_kernel, BF16)


def test_products_that_no_kernel_serves_are_refused() -> None:
    product = gemm(rows(3, 128, 512), columns(3, 512, 640))
    with pytest.raises(dispatch.NoKernelError, match="gemm needs another product, for a: "):
        product.sum().backward()


def test_8_bits_are_for_inference() -> None:
    a, b = (torch.randn(256, 512, device=DEVICE).to(torch.float8_e4m3fn) for _ in range(2))
    product = gemm(a, b.t(), out_dtype=torch.bfloat16)
    exact = a.double() @ b.double().t()
    assert product.dtype == torch.bfloat16 and (product.double() - exact).norm() <= 1e-2 * exact.norm()
    with pytest.raises(dispatch.ArrayError, match="a requires grad and is torch"):
        gemm(a.requires_grad_(), b.t(), out_dtype=torch.bfloat16)


def test_opcheck() -> None:
    plain = rows(128, 256), columns(256, 128), []
    fused = rows(128, 256), columns(256, 128), [rows(128)], "add", "gelu"
    for operands in (plain, fused):
        assert set(torch.library.opcheck(OPERATOR, operands).values()) == {"SUCCESS"}


def test_forward_and_backward_are_on_the_current_stream() -> None:
    x, late, weight = (torch.randn(512, 512, device=DEVICE).bfloat16() for _ in range(3))
    weight.requires_grad_()
    linear(x, weight).sum().backward()
    weight.grad = None
    synchronize()
    with on_new_stream():
        sleep()
        x.copy_(late)
        output = linear(x, weight)
        output.backward(late)
    synchronize()
    exact = late.double() @ weight.detach().double().t(), late.double().t() @ late.double()
    for one, wanted in zip((output, weight.grad), exact, strict=True):
        assert (one.double() - wanted).norm() <= 1e-2 * wanted.norm()


def test_a_cuda_graph_owns_its_workspace(dispatcher: dispatch.Dispatcher) -> None:
    workspaces = []
    for k in (512, 4096, 16384, 65536):
        a, b = (torch.randn(128, k, device=DEVICE).bfloat16() for _ in range(2))
        workspaces.append(dispatcher.plan_gemm(a, b.t()).workspace_bytes)
        graph, product = torch.cuda.CUDAGraph(), gemm(a, b.t())
        with torch.cuda.device(DEVICE), torch.cuda.graph(graph):
            product = gemm(a, b.t())
        a.copy_(torch.randn_like(a))
        dispatch.trim()
        others = [torch.full((1 << 20,), float("nan"), device=DEVICE) for _ in range(64)]
        graph.replay()
        synchronize()
        exact = a.double() @ b.double().t()
        assert (product.double() - exact).norm() <= 1e-2 * exact.norm()
        assert all(one.isnan().all() for one in others)
    assert any(workspaces)  # a long k is divided among multiprocessors


@pytest.mark.parametrize("options", [{"dynamic": True}, {"mode": "reduce-overhead"}], ids=["dynamic", "cuda graphs"])
def test_compiled_training_steps(options: dict[str, Any]) -> None:
    def loss(x: Any, weight: Any, bias: Any, last: Any) -> Any:
        return linear(linear(x, weight, bias, activation="gelu"), last).float().square().mean()

    compiled = torch.compile(loss, fullgraph=True, **options)
    weights = [rows(512, 256), rows(512), rows(128, 512)]
    with torch.cuda.device(DEVICE):
        for size in (256, 256, 256, 384):
            x = rows(size, 256).detach()
            expected = torch.autograd.grad(loss(x, *weights), weights)
            grads = torch.autograd.grad(compiled(x, *weights), weights)
            for one, wanted in zip(grads, expected, strict=True):
                assert (one.double() - wanted.double()).norm() <= 2e-2 * wanted.double().norm()


def test_autocast_casts_to_bf16() -> None:
    x, weight = rows(256, 512, dtype=torch.float32), rows(640, 512, dtype=torch.float32)
    with torch.autocast("cuda", torch.bfloat16):
        output = linear(x, weight)
    assert output.dtype == torch.bfloat16
    (grad,) = torch.autograd.grad(output.float().square().sum(), weight)
    wide = weight.detach().double().requires_grad_()
    (exact,) = torch.autograd.grad((x.detach().double() @ wide.t()).square().sum(), wide)
    assert grad.dtype == torch.float32 and (grad.double() - exact).norm() <= 2e-2 * exact.norm()


def test_another_device_needs_its_own_dispatcher() -> None:
    with pytest.raises(LookupError, match="no dispatcher is in use for cpu; in use: cuda"):
        gemm(torch.randn(3, 4), torch.randn(4, 5))
