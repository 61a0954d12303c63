"""The operator as torch sees it: checked, traced, compiled, refused. Kernels are mocks."""

from __future__ import annotations

from typing import Any

import pytest

import torch
from kernelwright.dispatch import ArrayError, NoKernelError, ProblemError
from kernelwright.torch import TransformError, dispatchers, gemm, linear
from kernelwright.torch.operators.gemm import OPERATOR
from torch._subclasses.fake_tensor import FakeTensorMode

pytestmark = pytest.mark.usefixtures("mocks_in_use")


def some(*shape: int, grad: bool = False) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=grad)


OPERANDS: dict[str, tuple[Any, ...]] = {
    "plain": (some(5, 7), some(7, 6), []),
    "column-major": (some(7, 5).t(), some(6, 7).t(), [], "add", "none", 0.5),
    "bias and relu": (some(5, 7, grad=True), some(7, 6, grad=True), [some(6, grad=True)], "add", "relu"),
    "factors": (some(5, 7), some(7, 6, grad=True), [some(5, 6, grad=True), some(1, 6, grad=True)], "multiply"),
    "batch": (some(3, 5, 7), some(3, 7, 6), []),
    "shared B": (some(3, 5, 7, grad=True), some(7, 6, grad=True), [some(6)], "add", "relu"),
}


@pytest.mark.parametrize("name", OPERANDS)
def test_opcheck(name: str) -> None:
    statuses = torch.library.opcheck(OPERATOR, OPERANDS[name])
    assert len(statuses) == 4 and set(statuses.values()) == {"SUCCESS"}


def test_compilers_keep_strides() -> None:
    assert torch.Tag.needs_exact_strides in OPERATOR.tags


def test_forward_mode_is_refused() -> None:
    a, b = some(5, 7), some(7, 6)
    with pytest.raises(NotImplementedError, match="kernelwright::gemm has no forward-mode derivative"):
        torch.func.jvp(lambda x: gemm(x, b), (a,), (a,))
    with pytest.raises(
        TransformError, match=r"allowed: reverse mode; call torch\.func\.vjp or jacrev, or torch\.autogr"
    ):
        torch.func.jacfwd(lambda x: gemm(x, b))(a)
    advised = torch.autograd.functional.jvp(lambda x: gemm(x, b), a, a)[1]
    torch.testing.assert_close(advised, a @ b)
    with torch.autograd.forward_ad.dual_level(), pytest.raises(NotImplementedError, match="forward-mode"):
        gemm(torch.autograd.forward_ad.make_dual(a, a), b)
    torch.testing.assert_close(gemm(a, b), a @ b)


def test_layouts_follow_from_strides() -> None:
    for a in (some(5, 7), some(7, 5).t()):
        for b in (some(7, 6), some(6, 7).t()):
            product = gemm(a, b)
            torch.testing.assert_close(product, a @ b)
            assert product.is_contiguous()


def test_linear_takes_any_number_of_dimensions() -> None:
    weight, bias = some(6, 7), some(6)
    for shape in ((7,), (5, 7), (2, 3, 7), (0, 7)):
        x = some(*shape)
        torch.testing.assert_close(linear(x, weight), torch.nn.functional.linear(x, weight))
    with pytest.raises(NoKernelError, match="add 1 D"):  # the mock adds row-major operands only
        linear(some(5, 7), weight, bias)
    torch.testing.assert_close(linear(some(5, 7), some(7, 6).t(), bias, activation="relu").shape, torch.Size([5, 6]))


def test_results_without_data() -> None:
    with FakeTensorMode():
        a, b = torch.empty(5, 7), torch.empty(7, 6)
        for left, right, shape in (
            (a, b, (5, 6)),
            (a.expand(3, 5, 7), b, (3, 5, 6)),
            (a, b.expand(3, 7, 6), (3, 5, 6)),
            (a.expand(3, 5, 7), b[None], (3, 5, 6)),
            (a[None], b.expand(3, 7, 6), (3, 5, 6)),
        ):
            product = gemm(left, right)
            assert product.shape == shape and product.dtype == torch.float32 and product.is_contiguous()
        with pytest.raises(ArrayError, match=r"a is \(5, 7\) and b \(6, 7\): k is 7 and 6"):
            gemm(a, b.t())
        narrow = {torch.int8: torch.int32, torch.float8_e4m3fn: torch.float16, torch.bfloat16: torch.bfloat16}
        for dtype, result in narrow.items():
            assert gemm(a.to(dtype), b.to(dtype)).dtype == result
        assert gemm(a.bfloat16(), b.bfloat16(), out_dtype=torch.float32).dtype == torch.float32
        with pytest.raises(ArrayError, match=r"a is torch.float64, .*; pass a\.to\(torch\.float32\)"):
            gemm(a.double(), b.double())


def test_compiled_in_one_graph() -> None:
    def layer(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return gemm(x, weight, ds=[bias], activation="relu").sum() + linear(x, weight.t()).square().sum()

    compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
    operands = [some(5, 7, grad=True), some(7, 6, grad=True), some(6, grad=True)]
    expected = torch.autograd.grad(layer(*operands), operands)
    torch.testing.assert_close(torch.autograd.grad(compiled(*operands), operands), expected)


def test_compiled_once_for_all_sizes() -> None:
    compiled_graphs = []

    def backend(graph: Any, _: Any) -> Any:
        compiled_graphs.append(graph)
        return graph

    def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return gemm(a, b).sum(0)

    compiled = torch.compile(product, backend=backend, fullgraph=True, dynamic=True)
    for m, n, k in ((5, 6, 7), (8, 9, 10), (3, 4, 2)):
        a, b = some(m, k), some(k, n)
        torch.testing.assert_close(compiled(a, b), (a @ b).sum(0))
    assert len(compiled_graphs) == 1


def test_dynamic_sizes_have_gradients() -> None:
    compiled = torch.compile(
        lambda a, b: gemm(a, b, activation=None).relu().sum(), backend="aot_eager", fullgraph=True, dynamic=True
    )
    for m, n, k in ((5, 6, 7), (8, 9, 10)):
        a, b = some(m, k, grad=True), some(k, n, grad=True)
        expected = torch.autograd.grad((a @ b).relu().sum(), [a, b])
        torch.testing.assert_close(torch.autograd.grad(compiled(a, b), [a, b]), expected)


def test_a_compiled_function_finds_the_dispatcher_of_each_call() -> None:
    compiled = torch.compile(gemm, backend="aot_eager", fullgraph=True)
    a, b = some(5, 7), some(7, 6)
    torch.testing.assert_close(compiled(a, b), a @ b)
    dispatchers.forget("cpu")
    with pytest.raises(dispatchers.DispatcherNotFoundError):
        compiled(a, b)


def test_exported_programs_hold_the_operator() -> None:
    class Layer(torch.nn.Module):  # type: ignore[misc]
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return gemm(a, b, dispatcher="")

    operands = some(5, 7), some(7, 6)
    program = torch.export.export(Layer(), operands)
    assert any(node.target is OPERATOR for node in program.graph.nodes)
    torch.testing.assert_close(program.module()(*operands), operands[0] @ operands[1])


def test_autocast_casts_floating_operands() -> None:
    seen: list[torch.dtype] = []

    class Spy(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func is OPERATOR:
                seen.extend(tensor.dtype for tensor in (args[0], args[1], *args[2]))
                return args[0] @ args[1]
            return func(*args, **(kwargs or {}))

    with torch.autocast("cpu", torch.bfloat16), Spy():
        gemm(some(5, 7), some(7, 6).half(), ds=[some(6)])
        gemm(some(5, 7), some(7, 6), ds=[some(6)], out_dtype=torch.float32)
        gemm(some(5, 7).to(torch.int8), some(7, 6).to(torch.int8))
    assert seen == [torch.bfloat16] * 5 + [torch.float32] + [torch.int8] * 2


def test_refusals() -> None:
    a, b = some(5, 7), some(7, 6)
    with pytest.raises(ArrayError, match=r"a is \(5, 7\) and b \(6, 7\): k is 7 and 6; they must be equal; transpose"):
        gemm(a, b.t())
    with pytest.raises(ArrayError, match=r"a has shape \(7,\); allowed: two dimensions, or three"):
        OPERATOR(a[0], b, [])
    with pytest.raises(ProblemError, match="activation is 'swish'; allowed: none, relu"):
        gemm(a, b, activation="swish")  # type: ignore[arg-type]
    with pytest.raises(ProblemError, match="d_op is 'minus'"):
        gemm(a, b, ds=[some(6)], d_op="minus")  # type: ignore[arg-type]
    with pytest.raises(NoKernelError, match="gelu"):
        gemm(a, b, activation="gelu")
    with pytest.raises(ArrayError, match=r"ds\[0\] is \(5, 5\); allowed: \(5, 6\), or extents that broadcast to it"):
        gemm(a, b, ds=[some(5, 5)])
    with pytest.raises(NotImplementedError, match="kernelwright::gemm"):
        OPERATOR(a.to_sparse(), b, [])


def test_negative_views_are_resolved_by_torch() -> None:
    a, b = some(5, 7), some(7, 6)
    torch.testing.assert_close(gemm(torch._neg_view(a), b), -a @ b)
