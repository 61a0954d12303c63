"""Every public operator, and the dispatcher itself, in torch's modes: ``no_grad``, ``inference_mode``, between them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
import torch
from torch.nn import functional

from kernelwright.dispatch import Dispatcher
from kernelwright.torch import conv2d, conv3d, gemm, linear, scaled_dot_product_attention, varlen_attn
from kernelwright.torch.testdata.references import ACTIVATIONS

Mode = Callable[[], AbstractContextManager[Any]]
Tensors = tuple[torch.Tensor, ...]
MODES: dict[str, Mode] = {
    "grad": nullcontext,
    "no_grad": torch.no_grad,
    "inference": torch.inference_mode,
    "grad inside inference": lambda: torch.inference_mode(False),
}
STARTS = torch.tensor([0, 3, 9], dtype=torch.int32)


def attended(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, **options: Any) -> torch.Tensor:
    return functional.scaled_dot_product_attention(q, k, v, **options)


def by_request(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    parts = zip(*(one.split([3, 6]) for one in (q, k, v)), strict=True)
    return torch.cat([attended(*(one.transpose(0, 1) for one in part)).transpose(0, 1) for part in parts])


def _with(activation: str) -> tuple[Any, Any, list[tuple[int, ...]]]:
    def ours(x: Any, w: Any, b: Any) -> Any:
        return linear(x, w, b, activation=activation)

    return ours, lambda x, w, b: ACTIVATIONS[activation](functional.linear(x, w, b)), [(5, 8), (6, 8), (6,)]


# Ours, torch's, and the operands' shapes.
OPERATORS: dict[str, tuple[Any, Any, list[tuple[int, ...]]]] = {
    "gemm": (gemm, torch.matmul, [(5, 8), (8, 6)]),
    "batched gemm": (gemm, torch.matmul, [(3, 5, 8), (3, 8, 6)]),
    "linear": (linear, functional.linear, [(4, 5, 8), (6, 8)]),
    **{f"linear with {name}": _with(name) for name in ("relu", "gelu", "silu")},
    "conv2d": (conv2d, functional.conv2d, [(2, 4, 7, 6), (5, 4, 3, 3)]),
    "conv2d with relu": (
        lambda x, w, b: conv2d(x, w, b, activation="relu"),
        lambda x, w, b: torch.relu(functional.conv2d(x, w, b)),
        [(2, 4, 7, 6), (5, 4, 3, 3), (5,)],
    ),
    "conv3d": (conv3d, functional.conv3d, [(1, 4, 5, 6, 7), (3, 4, 2, 2, 2)]),
    "attention": (scaled_dot_product_attention, attended, [(2, 3, 5, 16)] * 3),
    "attention with a mask": (
        lambda q, k, v, m: scaled_dot_product_attention(q, k, v, m),
        lambda q, k, v, m: attended(q, k, v, attn_mask=m),
        [(2, 3, 5, 16)] * 3 + [(5, 5)],
    ),
    "causal attention": (
        lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True),
        lambda q, k, v: attended(q, k, v, is_causal=True),
        [(2, 3, 5, 16)] * 3,
    ),
    "varlen": (lambda q, k, v: varlen_attn(q, k, v, STARTS, STARTS, 6, 6), by_request, [(9, 3, 16)] * 3),
}


def some(shapes: list[tuple[int, ...]], grad: bool = False) -> Tensors:
    return tuple(torch.randn(shape, requires_grad=grad) for shape in shapes)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str, mode: str) -> None:
    ours, theirs, shapes = OPERATORS[name]
    outside = torch.inference_mode() if mode == "grad inside inference" else nullcontext()
    for grad in (False, True):
        operands = some(shapes, grad)
        for _ in range(3):  # checked in full, then recognised
            with outside, MODES[mode]():
                actual, wanted = ours(*operands), theirs(*operands)
                torch.testing.assert_close(actual, wanted, atol=1e-5, rtol=1e-5)
                assert actual.is_inference() == wanted.is_inference()
                assert actual.requires_grad == wanted.requires_grad


@pytest.mark.parametrize("name", OPERATORS)
def test_tensors_made_inside_are_used_outside(name: str) -> None:
    ours, theirs, shapes = OPERATORS[name]
    with torch.inference_mode():
        inside = some(shapes)
    for mode in ("grad", "inference", "no_grad", "grad"):
        with MODES[mode]():
            torch.testing.assert_close(ours(*inside), theirs(*inside), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", OPERATORS)
def test_gradients_after_calls_in_inference_mode(name: str) -> None:
    """What a call in one mode remembers must not reach a call in another."""
    ours, theirs, shapes = OPERATORS[name]
    operands = some(shapes, True)
    for mode in ("inference", "grad", "inference", "grad"):
        with MODES[mode]():
            output = ours(*operands)
        if mode == "grad":
            wanted = theirs(*operands)
            weights = torch.randn_like(wanted)
            pairs = (torch.autograd.grad(one, operands, weights) for one in (output, wanted))
            for one, other in zip(*pairs, strict=True):
                torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


Call = Callable[[Dispatcher, Tensors, torch.Tensor], Any]
A, B, Q = (4, 8), (8, 6), (2, 5, 3, 16)
CALLS: dict[str, tuple[Call, list[tuple[int, ...]], tuple[int, ...]]] = {
    "gemm": (lambda d, x, out: d.gemm(*x, out=out), [A, B], (4, 6)),
    "plan": (lambda d, x, out: d.plan_gemm(*x, out=out)(*x, out=out), [A, B], (4, 6)),
    "attention": (lambda d, x, out: d.attention(*x, out), [Q, Q, Q], Q),
    "conv": (lambda d, x, out: d.conv_forward(*x, out), [(1, 6, 6, 4), (5, 3, 3, 4)], (1, 4, 4, 5)),
}


@pytest.mark.parametrize("name", CALLS)
def test_versions_of_results(name: str, dispatcher: Dispatcher) -> None:
    """A write is a new version of a tensor that has one, in every mode, whatever the guard was made of before."""
    call, shapes, shape = CALLS[name]
    operands, tracked = some(shapes), torch.empty(shape)
    with torch.inference_mode():
        inside, untracked = some(shapes), torch.empty(shape)
    for mode in ("inference", "grad", "no_grad", "inference", "grad"):
        for given in (operands, inside):
            for out in (untracked, tracked, untracked, tracked):
                before = None if out.is_inference() else out._version
                with MODES[mode]():
                    assert call(dispatcher, given, out) is out
                if before is not None:
                    assert out._version > before
    with torch.inference_mode():
        call(dispatcher, operands, tracked)
    torch.testing.assert_close(tracked, call(dispatcher, operands, untracked))


@pytest.mark.parametrize("first", ["grad", "inference"])
def test_bound_plans(first: str, dispatcher: Dispatcher) -> None:
    for made_in in ("grad", "inference"):
        with MODES[made_in]():
            a, b, out = torch.randn(4, 8), torch.randn(8, 6), torch.empty(4, 6)
        with MODES[first]():
            bound = dispatcher.plan_gemm(a, b, out=out).bind(a, b, out=out)
        for mode in ("inference", "grad"):
            with MODES[mode]():
                assert bound() is out
                torch.testing.assert_close(out, a @ b)


def test_what_is_saved_and_overwritten_in_inference_mode_is_refused(dispatcher: Dispatcher) -> None:
    a, b, out = torch.randn(4, 8), torch.randn(8, 6), torch.empty(4, 6)
    for _ in range(3):
        loss = (torch.ones(4, 6, requires_grad=True) * out).sum()  # saves out
        with torch.inference_mode():
            dispatcher.gemm(a, b, out=out)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()


def test_results_that_are_allocated_belong_to_the_mode_of_their_call(dispatcher: Dispatcher) -> None:
    a, b = torch.randn(7, 8), torch.randn(8, 9)
    for mode in ("inference", "grad", "inference", "grad"):
        with MODES[mode]():
            assert dispatcher.gemm(a, b).is_inference() == (mode == "inference")


def test_caches(dispatcher: Dispatcher) -> None:
    with torch.inference_mode():
        q, cache = torch.randn(2, 1, 3, 16), torch.randn(2, 9, 3, 16)
    lengths = torch.tensor([9, 4], dtype=torch.int32)
    for mode in ("inference", "grad", "inference"):
        with MODES[mode]():
            output = dispatcher.decode(q, cache, cache, lengths)
            for request, keys in enumerate((9, 4)):
                seen = cache[request, :keys].transpose(0, 1)
                wanted = attended(q[request].transpose(0, 1), seen, seen).transpose(0, 1)
                torch.testing.assert_close(output[request], wanted, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", OPERATORS)
def test_inference_tensors_are_saved_as_copies_or_refused(name: str) -> None:
    """torch's own message says what to do where an operand itself would be saved; gradients of copies are right."""
    ours, theirs, shapes = OPERATORS[name]
    with torch.inference_mode():
        inside = some(shapes)
    mixed = (inside[0], *some(shapes[1:], True))
    normal = [one.detach().clone().requires_grad_(one.requires_grad) for one in mixed]
    try:
        output = ours(*mixed)
    except RuntimeError as error:
        assert "Inference tensors cannot be saved for backward" in str(error)
        return
    with_grad = [(one, other) for one, other in zip(mixed, normal, strict=True) if one.requires_grad]
    grads = torch.autograd.grad(output.sum(), [one for one, _ in with_grad])
    wanted = torch.autograd.grad(theirs(*normal).sum(), [other for _, other in with_grad])
    for one, other in zip(grads, wanted, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)
