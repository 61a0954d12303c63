"""Gradients of ``kernelwright::gemm``, whose products run on the same dispatcher.

With P = alpha A·B and Z = P op D0 op D1 …, the result is act(Z). Given G, the gradient of Z:

* of P it is G, or G * D0 * D1 … if the D tensors are multiplied,
* of A it is alpha H·Bᵀ and of B alpha Aᵀ·H, where H is the gradient of P,
* of a D tensor it is G, or G * P * the other D tensors, summed over the rows that share it.

P is recomputed if an activation or a factor needs it: a fused kernel does not write it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError, NoKernelError
from kernelwright.torch import activations
from kernelwright.torch.operators.native import products


def save(ctx: Any, inputs: tuple[Any, ...], output: torch.Tensor) -> None:
    """Keep what :func:`backward` needs. Raises ArrayError for operands of 8 bits that require grad."""
    a, b, ds, ctx.d_op, ctx.activation, ctx.alpha, _, ctx.dispatcher = inputs
    for name, operand in (("a", a), ("b", b)):
        if operand.requires_grad and operand.element_size() == 1:
            raise ArrayError(
                f"{name} requires grad and is {operand.dtype}; gradients are computed for float32, float16 and "
                f"bfloat16: pass {name}.detach(), or operands of these"
            )
    ctx.d_shapes = [d.shape for d in ds]
    ctx.shapes, ctx.columns = (a.shape, b.shape), (_column_major(a), _column_major(b))
    ctx.factors = ctx.d_op == "multiply" and len(ds) > 0
    ctx.needs_product = activations.needs_argument(ctx.activation) or (ctx.factors and any(d.requires_grad for d in ds))
    ctx.save_for_backward(
        a if b.requires_grad or ctx.needs_product else None,
        b if a.requires_grad or ctx.needs_product else None,
        output if activations.needs_result(ctx.activation) else None,
        *(ds if ctx.factors or ctx.needs_product else ()),
    )


def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
    """Gradients of A, B and the D tensors. Raises NoKernelError if no kernel serves one of the products."""
    a, b, output, *ds = ctx.saved_tensors
    needs_a, needs_b, needs_ds, *_ = ctx.needs_input_grad
    dtype, product, argument = grad.dtype, None, None
    if ctx.needs_product:
        product = _wide(_gemm("the activation's argument or a D tensor", a, b, dtype, ctx))
        argument = _combined(product, ds, ctx.factors)
    if ctx.needs_product or ctx.factors:  # several roundings: not in 16 bits
        grad, output = _wide(grad), _wide(output)
    grad = activations.gradient(ctx.activation, grad, output, argument)
    of_ds = [None] * len(ctx.d_shapes)
    for number, shape in enumerate(ctx.d_shapes):
        if needs_ds[number]:
            others = [product, *ds[:number], *ds[number + 1 :]] if ctx.factors else []
            of_ds[number] = _times(grad, others).sum_to_size(shape).to(dtype)
    grad = _times(grad, ds if ctx.factors else [])
    of_a = _of_a(b, grad, ctx) if needs_a else None
    of_b = _of_b(a, grad, ctx) if needs_b else None
    return of_a, of_b, of_ds, *[None] * (len(ctx.needs_input_grad) - 3)  # torch leaves out arguments of default value


def _of_a(b: torch.Tensor, grad: torch.Tensor, ctx: Any) -> torch.Tensor:
    shape, columns = ctx.shapes[0], ctx.columns[0]
    grad = grad.to(b.dtype).contiguous()
    if _shared(ctx.shapes):  # one product with the rows of the whole batch
        return _gemm("a", grad.flatten(0, 1), b.mT, b.dtype, ctx).reshape(shape)
    return _in_layout("a", grad, b.mT, columns, ctx).sum_to_size(shape)


def _of_b(a: torch.Tensor, grad: torch.Tensor, ctx: Any) -> torch.Tensor:
    shape, columns = ctx.shapes[1], ctx.columns[1]
    grad = grad.to(a.dtype).contiguous()
    if _shared(ctx.shapes):
        a, grad = a.flatten(0, 1), grad.flatten(0, 1)
    return _in_layout("b", a.mT, grad, columns, ctx).sum_to_size(shape)


def _in_layout(what: str, left: torch.Tensor, right: torch.Tensor, columns: bool, ctx: Any) -> torch.Tensor:
    """left @ right, column-major if the operand that it is the gradient of is: an optimizer then accumulates alike."""
    if columns:
        return _gemm(what, right.mT, left.mT, left.dtype, ctx).mT
    return _gemm(what, left, right, left.dtype, ctx)


def _gemm(what: str, left: torch.Tensor, right: torch.Tensor, dtype: torch.dtype, ctx: Any) -> torch.Tensor:
    try:
        return products.product(left, right, ctx.alpha, dtype, ctx.dispatcher)
    except NoKernelError as error:
        why = f"the gradient of kernelwright::gemm needs another product, for {what}: {error.reason}"
        raise NoKernelError(why, *error.advice) from None


def _combined(product: torch.Tensor, ds: Sequence[torch.Tensor], factors: bool) -> torch.Tensor:
    return _times(product, ds) if factors else sum((_wide(d) for d in ds), product)


def _times(value: torch.Tensor, factors: Sequence[torch.Tensor]) -> torch.Tensor:
    for factor in factors:
        value = value * _wide(factor)
    return value


def _wide(value: torch.Tensor) -> torch.Tensor:
    return None if value is None else value.to(torch.float32)


def _shared(shapes: tuple[Any, Any]) -> bool:
    """Whether a batch shares one B."""
    return len(shapes[0]) == 3 and len(shapes[1]) == 2


def _column_major(matrix: torch.Tensor) -> bool:
    return bool(matrix.stride(-2) == 1 and matrix.stride(-1) != 1)
