"""Layers and convolutions of any shapes, strides and transforms against torch's own, by real CPU kernels."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch.nn import functional

from kernelwright.dispatch import Dispatcher, NoKernelError
from kernelwright.torch import conv1d, conv2d, conv3d, gemm, linear

OURS = {1: conv1d, 2: conv2d, 3: conv3d}
TORCHS = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}
EXTENTS = st.sampled_from([0, 1, 1, 2, 3, 5, 8, 17])
DTYPES = st.sampled_from([torch.float32, torch.float32, torch.bfloat16])
MANY = settings(
    max_examples=250, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@st.composite
def memory(draw: Any, shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor of a shape: dense, permuted, expanded, with gaps, or with steps."""
    kind = draw(st.sampled_from(["dense", "permuted", "expanded", "gaps", "steps"]))
    if not shape or kind == "dense":
        return torch.randn(shape)
    if kind == "permuted":
        order = draw(st.permutations(range(len(shape))))
        return torch.randn([shape[at] for at in order]).permute([order.index(at) for at in range(len(shape))])
    if kind == "expanded":
        at = draw(st.integers(0, len(shape) - 1))
        return torch.randn([min(e, 1) if i == at else e for i, e in enumerate(shape)]).expand(shape)
    if kind == "gaps":
        return torch.randn([e + 2 for e in shape])[tuple(slice(1, 1 + e) for e in shape)]
    return torch.randn([2 * e for e in shape])[tuple(slice(None, None, 2) for _ in shape)]


def agree(ours: Any, theirs: Any, operands: list[torch.Tensor], dtype: torch.dtype) -> None:
    """Results and gradients of ``ours`` are those of ``theirs`` in fp32, as closely as the dtype allows."""
    narrow = [one.to(dtype).detach().requires_grad_() for one in operands]
    wide = [one.detach().float().requires_grad_() for one in narrow]
    expected, actual = theirs(*wide), ours(*narrow)
    assert actual.shape == expected.shape and actual.dtype == dtype
    weights = torch.randn(expected.shape).to(dtype)
    grads = torch.autograd.grad(actual, narrow, weights)
    for one, exact in zip(
        (actual, *grads), (expected, *torch.autograd.grad(expected, wide, weights.float())), strict=True
    ):
        assert one.dtype == dtype
        share = 1e-4 if dtype == torch.float32 else 0.02
        assert (one.float() - exact).norm() <= share * exact.norm() + share, (one.shape, [o.stride() for o in narrow])


@st.composite
def layers(draw: Any) -> tuple[list[torch.Tensor], torch.dtype, str | None]:
    """x, weight, maybe a bias; dtype; activation, of those that kernels have beside a bias in fp32."""
    dtype, k, n = draw(DTYPES), draw(EXTENTS), draw(EXTENTS)
    outer = tuple(draw(st.lists(EXTENTS, max_size=3)))
    operands = [draw(memory((*outer, k))), torch.randn(n, k)]
    if dtype != torch.float32 or draw(st.booleans()):
        return operands, dtype, None
    whole = (*outer, n)
    shape = draw(st.sampled_from([(n,), (n,), (1,), (), whole, whole[-2:], (1, n)[-len(whole) :]]))
    operands.append(draw(memory(shape)))
    return operands, dtype, draw(st.sampled_from([None, "relu", "gelu"]))


@MANY
@given(layers())
def test_layers_are_those_of_torch(layer: tuple[list[torch.Tensor], torch.dtype, str | None]) -> None:
    operands, dtype, activation = layer
    act = {None: lambda y: y, "relu": torch.relu, "gelu": functional.gelu}[activation]
    agree(
        lambda *given: linear(*given, activation=activation),
        lambda *given: act(functional.linear(*given)),
        operands,
        dtype,
    )


@st.composite
def convolutions(draw: Any) -> tuple[int, list[torch.Tensor], torch.dtype, dict[str, Any]]:
    """Dimensions; x, w and maybe a bias; dtype; options that leave a result."""
    dims, dtype, groups = draw(st.sampled_from([1, 2, 3])), draw(DTYPES), draw(st.sampled_from([1, 1, 2, 3]))
    small, several = st.sampled_from([1, 2, 3]), st.lists(st.sampled_from([1, 2]), min_size=dims, max_size=dims)
    c, k, n = groups * draw(small), groups * draw(small), draw(st.sampled_from([0, 1, 2]))
    points = tuple(draw(small) for _ in range(dims))
    options: dict[str, Any] = {"groups": groups, "dilation": draw(several)}
    options["padding"] = draw(st.sampled_from(["same", "valid", 0, 1, [1] * dims]))
    if options["padding"] != "same":
        options["stride"] = draw(st.one_of(several, st.sampled_from([1, 3])))
    size = tuple(d * (p - 1) + 1 + draw(st.integers(0, 4)) for p, d in zip(points, options["dilation"], strict=True))
    x = (c, *size) if draw(st.integers(0, 3)) == 0 else (n, c, *size)
    operands = [draw(memory(x)), draw(memory((k, c // groups, *points)))]
    if dtype == torch.float32 and draw(st.booleans()):
        operands.append(draw(memory((k,))))
    return dims, operands, dtype, options


@MANY
@given(convolutions())
def test_convolutions_are_those_of_torch(case: tuple[int, list[torch.Tensor], torch.dtype, dict[str, Any]]) -> None:
    dims, operands, dtype, options = case
    agree(lambda *given: OURS[dims](*given, **options), lambda *given: TORCHS[dims](*given, **options), operands, dtype)


X, W, BIAS = torch.randn(3, 4, 9, 8), torch.randn(6, 2, 3, 2), torch.randn(6)


@pytest.mark.parametrize(
    "dims", [(0, None, None), (None, 1, None), (None, None, 0), (1, 0, None), (3, 2, 1), (0, None, 1)]
)
@pytest.mark.parametrize("transform", ["vmap", "gradients"])
def test_batches_of_convolutions(dims: tuple[int | None, ...], transform: str) -> None:
    def batched(convolve: Any) -> Any:
        def loss(x: Any, w: Any, bias: Any) -> Any:
            return convolve(x, w, bias, padding=1, stride=(1, 2), groups=2).sin().sum()

        whole = torch.func.grad(loss, (0, 1, 2)) if transform == "gradients" else lambda *at: convolve(*at, groups=2)
        return torch.vmap(whole, dims)(*operands)

    operands = [
        one if dim is None else torch.stack([one, -one], dim) for one, dim in zip((X, W, BIAS), dims, strict=True)
    ]
    torch.testing.assert_close(batched(conv2d), batched(functional.conv2d), rtol=1e-3, atol=1e-3)


def test_second_derivatives_within_transforms() -> None:
    def hessian(convolve: Any) -> Any:
        return torch.func.jacrev(torch.func.grad(lambda x, w: convolve(x, w, groups=2).sin().sum()), 1)(
            X[:1, :, :4, :3], W
        )

    torch.testing.assert_close(hessian(conv2d), hessian(functional.conv2d), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("shape", [(4, 30), (2, 4, 30)])
def test_compiled_convolutions_of_one_dimension(shape: tuple[int, ...], dynamic: bool) -> None:
    def loss(x: torch.Tensor, w: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return conv1d(x, w, bias, stride=2, padding=1, activation="relu").square().mean()

    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True, dynamic=dynamic)
    for size in (30, 41):
        operands = [torch.randn(*shape[:-1], size), torch.randn(6, 4, 3), torch.randn(1).expand(6)]
        operands = [one.requires_grad_() for one in operands]
        expected = torch.autograd.grad(loss(*operands), operands)
        torch.testing.assert_close(torch.autograd.grad(compiled(*operands), operands), expected)


@pytest.mark.parametrize("layout", ["rrr", "rcr", "crr", "ccr"])
@pytest.mark.parametrize(("m", "n"), [(5, 6), (1, 6), (5, 1), (64, 80), (0, 6), (5, 0)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sums_over_nothing_leave_the_epilogue(
    dispatcher: Dispatcher, layout: str, m: int, n: int, dtype: torch.dtype
) -> None:
    a = torch.zeros(m, 0) if layout[0] == "r" else torch.zeros(0, m).t()
    b, c = torch.zeros(0, n) if layout[1] == "r" else torch.zeros(n, 0).t(), torch.randn(m, n).to(dtype)
    a, b = a.to(dtype), b.to(dtype)
    torch.testing.assert_close(dispatcher.gemm(a, b, c, c.clone(), beta=0.5, layout=layout), 0.5 * c)
    torch.testing.assert_close(dispatcher.gemm(a, b, layout=layout), torch.zeros(m, n, dtype=dtype))
    if (layout, dtype) == ("rcr", torch.float32):  # kernels with D tensors
        torch.testing.assert_close(dispatcher.gemm(a, b, ds=[c], activation="relu", layout=layout), torch.relu(c))
        torch.testing.assert_close(dispatcher.gemm(a, b, ds=[c], d_op="multiply", layout=layout), torch.zeros(m, n))
    if (layout, dtype) == ("rrr", torch.float32):  # batched ones
        torch.testing.assert_close(gemm(a.expand(3, m, 0), b.expand(3, 0, n)), torch.zeros(3, m, n))


def test_what_no_kernel_serves_is_told() -> None:
    with pytest.raises(NoKernelError, match="add 1 D"):
        gemm(torch.ones(5, 7, dtype=torch.int8), torch.ones(7, 6, dtype=torch.int8), ds=[torch.ones(6).int()])
