"""``kernelwright::attention_backward``: gradients of ``kernelwright::attention``, by the same dispatcher's kernels.

The gradient of a broadcast bias is summed over the broadcast dimensions.
"""

from __future__ import annotations

from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch import dispatchers
from kernelwright.torch.fallback import attentions
from kernelwright.torch.operator import laid_out, register
from kernelwright.torch.operators import attention_batching
from kernelwright.torch.operators.attention_common import (
    check_gradients,
    features,
    no_second_derivative,
    of_sinks,
    with_advice,
)
from kernelwright.torch.operators.native import attention_backward
from kernelwright.torch.schemas import ATTENTION, ATTENTION_BACKWARD, keep, kept


def beside(q: torch.Tensor, hdim: Any) -> torch.Tensor:
    """Memory like q's with another head dimension: heads before rows, or rows before heads, as in q."""
    batch, heads, rows, _ = q.shape
    if q.stride(1) < q.stride(2):
        return q.new_empty(batch, rows, heads, hdim).transpose(1, 2)
    return q.new_empty(batch, heads, rows, hdim)


def save(ctx: Any, inputs: tuple[Any, ...], output: tuple[torch.Tensor, torch.Tensor]) -> None:
    """Keep what :func:`backward` needs. Raises ArrayError for an unsupported gradient."""
    a = ATTENTION.arguments(inputs)
    check_gradients((("query", a.q), ("key", a.k), ("value", a.v)), a.slopes, (a.bias, a.sinks), a.with_lse)
    keep(ctx, a, output)


def backward(ctx: Any, grad: torch.Tensor, _: torch.Tensor) -> tuple[Any, ...]:
    """Gradients of Q, K, V, bias and sinks. Raises NoKernelError if no kernel serves them."""
    a, out, lse = kept(ctx)
    needs = ATTENTION.arguments(ctx.needs_input_grad)
    return of_operands(a, out, lse, grad, needs.bias, needs.sinks)


def of_operands(
    a: Any, out: torch.Tensor, lse: torch.Tensor, grad: torch.Tensor, needs_bias: bool, needs_sinks: bool
) -> tuple[Any, ...]:
    """Gradients of all arguments ``a`` of the operator, given its results and the gradient of O."""
    with_dbias = a.bias is not None and needs_bias
    if grad.stride(-1) != 1:
        grad = grad.contiguous()
    given = ATTENTION_BACKWARD.of(a, out=out, grad=grad, lse=lse, with_dbias=with_dbias)
    dq, dk, dv, *dbias = attention_backward.differentiated(OPERATOR, given)
    dsinks = None
    if a.sinks is not None and needs_sinks:
        dsinks = of_sinks(a.sinks, lse, (grad.float() * out.float()).sum(-1))
    return ATTENTION.gradients(
        q=dq, k=dk, v=dv, bias=dbias[0].sum_to_size(a.bias.shape) if with_dbias else None, sinks=dsinks
    )


def _run(*given: Any) -> tuple[torch.Tensor, ...]:
    a = ATTENTION_BACKWARD.arguments(given)
    with torch.no_grad(), with_advice(a.dropout_p, a.soft_cap, a.with_dbias):
        dq, dk, dv, dbias = _results(a)
        dispatchers.find(a.dispatcher, a.q.device).attention_backward(
            a.q, a.k, a.v, a.out, a.grad, a.lse, dq=dq, dk=dk, dv=dv, dbias=dbias if a.with_dbias else False,
            bias=a.bias, alibi_slopes=a.slopes, deterministic=a.deterministic, layout="bhsd", **features(a),
        )  # fmt: skip
    return dq, dk, dv, dbias


def _fake(*given: Any) -> tuple[torch.Tensor, ...]:
    return _results(ATTENTION_BACKWARD.arguments(given))


def _results(a: Any) -> tuple[torch.Tensor, ...]:
    """Allocate results in the order of the operands; dbias, not broadcast, is empty if not requested."""
    dbias = (a.q if a.bias is None else a.bias).new_empty(
        (*a.q.shape[:-1], a.k.shape[-2]) if a.with_dbias and a.bias is not None else (0,)
    )
    return *(beside(one, one.shape[-1]) for one in (a.q, a.k, a.v)), dbias


OPERATOR = register(
    ATTENTION_BACKWARD.text,
    _run,
    laid_out(attentions.backward, _fake),
    _fake,
    *no_second_derivative("attention"),
    attention_batching.backward,
)
