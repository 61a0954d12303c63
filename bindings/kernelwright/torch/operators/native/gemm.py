"""``gemm`` on the native road: what it learns of a product, and gradients of results it has computed."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch.operators import gemm_gradient, gemm_shapes
from kernelwright.torch.operators.native import products
from kernelwright.torch.operators.native.taught import Lesson, Taught, records
from kernelwright.torch.road import launch, launch_all

_TAUGHT = Taught("gemm", "gemm")
_KINDS = _TAUGHT.kinds


def gemm(
    a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: str, activation: str | None, alpha: float,
    out_dtype: torch.dtype | None,
) -> Any:  # fmt: skip
    """Return the product, with its gradient recorded; None if the Python road must be taken."""
    if type(alpha) is not float:  # True and 1 would match an entry for 1.0
        return None
    option = d_op, activation, alpha, out_dtype
    if not ds:
        result = launch(_KINDS, option, a, b)
        if result is None or not (records() and (a.requires_grad or b.requires_grad)):
            return result
        if activation is None and a.dim() == b.dim() == 2:  # the most common case
            return _Product.apply((result,), a, b, alpha)
        return _recorded(result, a, b, ds, d_op, activation, alpha)
    result = launch_all(_KINDS, option, (a, b, *ds))
    if result is None or not records() or not any(one.requires_grad for one in (a, b, *ds)):
        return result
    return _recorded(result, a, b, ds, d_op, activation, alpha)


def _recorded(
    result: torch.Tensor, a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: str,
    activation: str | None, alpha: float,
) -> Any:  # fmt: skip
    word = "none" if activation is None else activation
    if a.dim() == b.dim() == 2 and all(_lies_beside(d, result.shape) for d in ds):
        return _Gemm.apply((result,), a, b, d_op, word, alpha, *ds)
    # Autograd records the views that make matrices of the operands. Nobody holds the result yet: it becomes no view.
    product = gemm_shapes.as_product(a, b, ds, ["a", "b", *(f"ds[{number}]" for number in range(len(ds)))])
    whole = result if product.shape is None else result.view(gemm_shapes.result_shape(product.a, product.b)).data
    recorded = _Gemm.apply((whole,), product.a, product.b, d_op, word, alpha, *product.ds)
    return recorded if product.shape is None else recorded.reshape(product.shape)


def _lies_beside(d: torch.Tensor, shape: Sequence[int]) -> bool:
    """Whether the operator takes a D tensor as it is: whole rows, or one row for all."""
    return bool(d.shape == shape) or (d.dim() == 1 and d.shape[0] == shape[1])


class _Product(torch.autograd.function._SingleLevelFunction):  # type: ignore[misc]
    """Records a product of two matrices that has been computed. No transform is active."""

    @staticmethod
    def forward(ctx: Any, computed: Any, a: Any, b: Any, alpha: float) -> torch.Tensor:
        """Return the only element of ``computed``; not passed as an input, of which autograd would make a view."""
        if not a.requires_grad:
            ctx.save_for_backward(a, None)
            ctx.known = b.shape, b.stride(), alpha
        elif not b.requires_grad:
            ctx.save_for_backward(None, b)
            ctx.known = a.shape, a.stride(), alpha
        else:
            ctx.save_for_backward(a, b)
            ctx.known = None, None, alpha
        result: torch.Tensor = computed[0]
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        """See :func:`gemm_gradient.backward`."""
        a, b = ctx.saved_tensors
        *other, alpha = ctx.known
        lie = [other if one is None else (one.shape, one.stride()) for one in (a, b)]
        known = *lie[0], *lie[1], [], alpha
        of_a, of_b, _ = gemm_gradient.backward(_addends((a, b), known, (*ctx.needs_input_grad[1:3], [])), grad)
        return None, of_a, of_b, None


class _Gemm(torch.autograd.function._SingleLevelFunction):  # type: ignore[misc]
    """Records a product that has been computed. No transform is active."""

    @staticmethod
    def forward(
        ctx: Any, computed: Any, a: Any, b: Any, d_op: str, activation: str, alpha: float, *ds: Any
    ) -> torch.Tensor:
        """Return the only element of ``computed``; not passed as an input, of which autograd would make a view."""
        result: torch.Tensor = computed[0]
        ctx.plain = activation == "none" and d_op == "add"
        if not ctx.plain:
            gemm_gradient.save(ctx, (a, b, ds, d_op, activation, alpha, None, ""), result)
            return result
        ctx.save_for_backward(a if b.requires_grad else None, b if a.requires_grad else None)
        ctx.known = a.shape, a.stride(), b.shape, b.stride(), [d.shape for d in ds], alpha  # one attribute is faster
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        """See :func:`gemm_gradient.backward`."""
        needed = ctx.needs_input_grad
        wanted = *needed[1:3], needed[6:]
        if ctx.plain:
            of_a, of_b, of_ds = gemm_gradient.backward(_addends(ctx.saved_tensors, ctx.known, wanted), grad)
            return None, of_a, of_b, None, None, None, *of_ds
        ctx.needs_input_grad = wanted
        try:
            of_a, of_b, of_ds = gemm_gradient.backward(ctx, grad)
        finally:
            ctx.needs_input_grad = needed
        return None, of_a, of_b, None, None, None, *of_ds


def _addends(saved: Any, known: Any, needed: Any) -> Any:
    """The state that :func:`gemm_gradient.save` keeps for a product with addends and no activation."""
    a, b = saved
    a_shape, a_strides, b_shape, b_strides, d_shapes, alpha = known
    columns = tuple(outer == 1 != inner for *_, outer, inner in (a_strides, b_strides))
    return SimpleNamespace(
        saved_tensors=(a, b, None), needs_input_grad=needed, d_shapes=d_shapes, shapes=(a_shape, b_shape),
        columns=columns, factors=False, needs_product=False, activation="none", alpha=alpha, dispatcher="",
    )  # fmt: skip


def learn(
    a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: str, activation: str | None, alpha: float,
    out_dtype: torch.dtype | None, result: torch.Tensor, generation: int,
) -> None:  # fmt: skip
    """Teach the native road the plan of a product that the dispatcher in use has just launched, if it can be taught.

    It can be if kernels read all operands in place.
    """
    if type(alpha) is not float or not alpha or alpha != alpha:  # -0.0 would match an entry for 0.0
        return
    made = result.detach()

    def lesson(a: torch.Tensor, b: torch.Tensor, *ds: torch.Tensor) -> Lesson | None:
        return products.planned((a, b, *ds), a, b, ds, d_op, activation, alpha, made)

    _TAUGHT.learn((a, b, *ds), (d_op, activation, alpha, out_dtype), generation, lesson)
