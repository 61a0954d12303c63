"""Operands of any number of dimensions and any strides, which kernels do not take as they are. Kernels are mocks."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import torch
from kernelwright.dispatch import KernelwrightError, NoKernelError
from kernelwright.torch import gemm, linear
from kernelwright.torch.operators import gemm_shapes
from torch.nn import functional

pytestmark = pytest.mark.usefixtures("mocks_in_use")


def some(*shape: int) -> torch.Tensor:
    return torch.randn(shape)


VECTORS_AND_BATCHES = [
    ((7,), (7,)), ((7,), (7, 6)), ((5, 7), (7,)), ((2, 5, 7), (7,)), ((7,), (2, 7, 6)), ((2, 3, 5, 7), (7, 6)),
    ((2, 3, 5, 7), (2, 3, 7, 6)), ((2, 1, 5, 7), (3, 7, 6)), ((5, 7), (2, 3, 7, 6)), ((2, 3, 5, 7), (1, 1, 7, 6)),
    ((0, 5, 7), (7, 6)), ((0, 5, 7), (0, 7, 6)), ((2, 0, 7), (7, 6)), ((5, 0), (0, 6)), ((0,), (0,)), ((5, 7), (7, 0)),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b"), VECTORS_AND_BATCHES)
def test_products_have_the_shapes_of_matmul(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    left, right = some(*a), some(*b)
    expected = torch.matmul(left, right)
    torch.testing.assert_close(gemm(left, right), expected)
    for shape in {(), expected.shape[-1:], expected.shape, (1,) * expected.dim()}:
        product = gemm_shapes.as_product(left, right, [some(*shape)], ["a", "b", "d"])
        assert product.a.dim() <= 3 and product.b.dim() <= 3 and product.ds[0].shape[-1] == product.b.shape[-1]


STRIDED = {
    "columns": lambda shape: some(*shape[::-1]).t(),
    "every other": lambda shape: some(shape[0], 2 * shape[1])[:, ::2],
    "one row": lambda shape: some(1, shape[1]).expand(shape),
    "one column": lambda shape: some(shape[0], 1).expand(shape),
    "one number": lambda shape: some(1, 1).expand(shape),
    "overlapping": lambda shape: torch.as_strided(some(99), shape, (2, 1)),
    "a block": lambda shape: some(shape[0] + 2, shape[1] + 2)[1:-1, 1:-1],
}


@pytest.mark.parametrize("make_a", STRIDED)
@pytest.mark.parametrize("make_b", STRIDED)
def test_strides_that_torch_copies_are_copied(make_a: str, make_b: str, caplog: pytest.LogCaptureFixture) -> None:
    a, b = STRIDED[make_a]((5, 7)), STRIDED[make_b]((7, 6))
    copied = [name for name, how in (("a", make_a), ("b", make_b)) if how not in ("columns", "a block")]
    with caplog.at_level(logging.DEBUG, "kernelwright.torch"):
        torch.testing.assert_close(gemm(a, b), a @ b)
    told = [message.split()[0] for message in caplog.messages]
    assert told == copied and all(f"with strides {dict(a=a, b=b)[name].stride()} is copied" in text
                                  for name, text in zip(copied, caplog.messages, strict=True))  # fmt: skip


@pytest.mark.parametrize("shape", [(), (1,), (6,), (1, 6), (5, 1), (1, 1), (5, 6)])
@pytest.mark.parametrize("expand", [False, True])
def test_d_tensors_are_broadcast(shape: tuple[int, ...], expand: bool) -> None:
    a, b, d = (some(*each).requires_grad_() for each in ((5, 7), (7, 6), shape))
    given_d = d.expand(5, 6) if expand else d
    actual, expected = gemm(a, b, ds=[given_d], activation="relu"), torch.relu(a @ b + d)
    torch.testing.assert_close(actual, expected)
    grads = torch.autograd.grad(actual.square().sum(), [a, b, d])
    torch.testing.assert_close(grads, torch.autograd.grad(expected.square().sum(), [a, b, d]), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("x", [(0,), (5, 0), (2, 3, 0), (0, 0)])
@pytest.mark.parametrize("bias", [None, (6,), (1,), ()])
def test_a_layer_without_inputs_gives_its_bias(x: tuple[int, ...], bias: tuple[int, ...] | None) -> None:
    operands = [some(*x), some(6, 0)]
    add = None if bias is None else some(*bias)
    if bias is not None:  # the mock adds row-major operands only
        actual = gemm(operands[0], operands[1].t().contiguous(), ds=[add], activation="relu")
    else:
        actual = linear(*operands)
    expected = functional.linear(*operands) if add is None else torch.relu(functional.linear(*operands) + add)
    torch.testing.assert_close(actual, expected)


def test_vectors_with_steps_are_copied_so_that_kernels_of_each_layout_serve_them() -> None:
    for vector in (some(1, 14)[:, ::2], some(7, 3)[:, :1]):
        copied = gemm_shapes.addressable("a", vector)
        assert copied.is_contiguous() and copied.data_ptr() != vector.data_ptr()
        torch.testing.assert_close(copied, vector)
    for vector in (some(1, 7), some(7, 1), some(9, 7)[3:4], some(7, 1).t()):
        assert gemm_shapes.addressable("a", vector) is vector


def test_weights_of_one_output_may_be_a_vector() -> None:
    for shape in ((7,), (5, 7), (2, 3, 7)):
        x, weight = some(*shape), some(7)
        torch.testing.assert_close(linear(x, weight), functional.linear(x, weight))


def test_rows_of_a_batch_are_read_where_they_lie(caplog: pytest.LogCaptureFixture) -> None:
    a, b = some(2, 3, 5, 7), some(7, 6)
    with caplog.at_level(logging.DEBUG, "kernelwright.torch"):
        gemm(a, b), gemm(a[:, :, ::2].contiguous(), b), gemm(a[:, 0], b[None].expand(2, 7, 6))
        assert not caplog.messages
        torch.testing.assert_close(gemm(a.transpose(0, 2), b), a.transpose(0, 2) @ b)
    assert len(caplog.messages) == 1 and "is copied: its leading dimensions do not lie one behind" in caplog.text


EXTENTS = st.sampled_from([0, 1, 1, 2, 3, 5])


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


@st.composite
def matmuls(draw: Any) -> tuple[torch.Tensor, torch.Tensor]:
    """Operands of ``torch.matmul``."""
    m, n, k = draw(EXTENTS), draw(EXTENTS), draw(EXTENTS)
    batch = draw(st.lists(EXTENTS, max_size=2))
    shapes = []
    for matrix in ((m, k), (k, n)):
        own = [1 if draw(st.booleans()) else extent for extent in batch]
        first = draw(st.integers(0, len(own)))
        shapes.append((k,) if draw(st.integers(0, 4)) == 0 else (*own[first:], *matrix))
    return tuple(draw(memory(shape)) for shape in shapes)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(matmuls())
def test_products_of_any_shapes_and_strides_are_those_of_matmul(operands: tuple[torch.Tensor, ...]) -> None:
    ours, theirs = ([one.detach().requires_grad_() for one in operands] for _ in range(2))
    expected = torch.matmul(*theirs)
    weights = torch.randn(expected.shape)
    grads = torch.autograd.grad(expected, theirs, weights)
    try:
        product = gemm(*ours)
        torch.testing.assert_close(product, expected, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(torch.autograd.grad(product, ours, weights), grads, rtol=1e-4, atol=1e-4)
    except NoKernelError:
        assert operands[1].dim() > 2  # mocks of batches read row-major matrices alone


OURS: Any = gemm  # called with what its types forbid
WRONG: list[tuple[Any, str]] = [
    (lambda a, b: OURS(a.numpy(), b), r"a is a numpy\.ndarray; allowed: a torch\.Tensor; pass torch\.from_numpy\(a\)"),
    (lambda a, b: OURS(a, b.tolist()), r"b is a builtins\.list; .*pass torch\.as_tensor\(b\)"),
    (lambda a, b: OURS(a, 2.0), r"b is a builtins\.float; allowed: a torch\.Tensor"),
    (lambda a, b: OURS(a, b, ds=[np.zeros(6)]), r"ds\[0\] is a numpy\.ndarray"),
    (lambda a, b: OURS(a, b, ds=a), r"ds is a Tensor; allowed: a list of tensors; pass ds=\[tensor\]"),
    (lambda a, b: OURS(a, b, ds=None), r"ds is a NoneType; allowed: a list of tensors"),
    (lambda a, b: OURS(a, b.double()), r"b is torch\.float64, .*; pass b\.to\(torch\.float32\)"),
    (lambda a, b: OURS(a, b.to(torch.complex64)), r"b is torch\.complex64, which no kernel computes"),
    (lambda a, b: OURS(a.long(), b), r"a: dtype int64 is served by no kernel; allowed: float32"),
    (lambda a, b: OURS(a.to_sparse(), b), r"a is a tensor of layout torch\.sparse_coo; .*pass a\.to_dense\(\)"),
    (lambda a, b: OURS(a, b.to("meta")), r"b is on meta and a on cpu; allowed: one device; pass b\.to\(a\.device\)"),
    (lambda a, b: OURS(a[0, 0], b), r"a has shape \(\); allowed: one dimension or more"),
    (
        lambda a, b: gemm(a.expand(2, 5, 7), b.expand(3, 7, 6)),
        r"batches of a \(2, 5, 7\) and b \(3, 7, 6\) differ: 2 and 3",
    ),
    (lambda a, b: OURS(a, b, ds=[some(2, 5, 6)]), r"ds\[0\] is \(2, 5, 6\); allowed: \(5, 6\), or extents that broad"),
    (lambda a, b: OURS(a, b, alpha="two"), r"alpha is 'two'; allowed: a real number"),
    (lambda a, b: OURS(a, b, activation=3), r"activation is 3; allowed: text"),
    (lambda a, b: OURS(a, b, d_op=None), r"d_op is None; allowed: text"),
    (lambda a, b: OURS(a, b, dispatcher=3), r"dispatcher is 3; allowed: text"),
    (lambda a, b: OURS(a, b, out_dtype="fp32"), r"out_dtype is 'fp32'; allowed: a torch\.dtype"),
    (lambda a, b: linear(a, b), r"x is \(5, 7\) and weight \(6, 7\) as B: k is 7 and 6"),
    (lambda a, b: linear(a, b.t(), some(5)), r"bias is \(5,\); allowed: \(5, 6\), or extents that broadcast to it"),
    (lambda a, b: linear(a, b.t(), a.numpy()), r"bias is a numpy\.ndarray"),
    (lambda a, b: linear(a, b.t().bfloat16()), r"weight is torch\.bfloat16 and x torch\.float32; allowed: one dtype"),
    (lambda a, b: linear(a, b.t(), some(6).half()), r"bias is torch\.float16 and x .*; pass bias\.to\(x\.dtype\)"),
    (lambda a, b: linear(a, b[None]), r"weight has shape \(1, 7, 6\); allowed: \(n, k\) or \(k,\)"),
]


@pytest.mark.parametrize(("call", "message"), WRONG)
def test_refusals_name_the_operand_and_say_what_to_do(call: Any, message: str) -> None:
    with pytest.raises(KernelwrightError, match=message):
        call(some(5, 7), some(7, 6))
