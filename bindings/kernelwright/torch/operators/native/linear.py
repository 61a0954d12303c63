"""``linear`` on the native road: what it learns of a call, and gradients of results it has computed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.torch import activations
from kernelwright.torch.operators import gemm_gradient
from kernelwright.torch.operators.native import products
from kernelwright.torch.operators.native.taught import Lesson, Taught, records
from kernelwright.torch.road import launch, ordinary

_TAUGHT = Taught("gemm", "linear")
_KINDS = _TAUGHT.kinds  # by activation


def linear(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str | None) -> Any:
    """Return the layer's result, with its gradient recorded; None if the Python road must be taken."""
    result = launch(_KINDS, activation, x, weight, bias)
    if result is None or not (
        records() and (weight.requires_grad or x.requires_grad or (bias is not None and bias.requires_grad))
    ):
        return result
    return _Linear.apply((result,), x, weight, bias, activation)


def computed_and_recorded(
    run: Callable[..., torch.Tensor], x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None,
    activation: str | None, dispatcher: str,
) -> Any:  # fmt: skip
    """Call ``run`` with these arguments, recorded like the native road if that may know the layer next time.

    Checkpointing computes a layer twice, perhaps on both roads, and compares what is saved for the gradient.
    """
    if not (records() and ordinary() and _may_be_taught(x, weight, bias)):
        return run(x, weight, bias, activation, dispatcher)
    with torch.no_grad():
        result = run(x, weight, bias, activation, dispatcher)
    if not any(one is not None and one.requires_grad for one in (x, weight, bias)):
        return result
    return _Linear.apply((result,), x, weight, bias, activation)


def _may_be_taught(x: Any, weight: Any, bias: Any) -> bool:
    """Whether the operands reduce to rows and columns of matrices; the Python road refuses all others."""
    try:
        return bool(
            weight.dim() == 2 and x.dim() >= 2 and x.dtype == weight.dtype and x.element_size() > 1
            and (bias is None or bias.shape == weight.shape[:1])
        )  # fmt: skip
    except AttributeError:
        return False


class _Linear(torch.autograd.function._SingleLevelFunction):  # type: ignore[misc]
    """Records a layer that has been computed. No transform is active, which autograd.Function would check first."""

    @staticmethod
    def forward(ctx: Any, computed: Any, x: Any, weight: Any, bias: Any, activation: str | None) -> torch.Tensor:
        """Return the only element of ``computed``; not passed as an input, of which autograd would make a view."""
        result: torch.Tensor = computed[0]
        needs_x, needs_weight = x.requires_grad, weight.requires_grad  # faster than ctx.needs_input_grad
        if activation is None:  # the most common case
            ctx.save_for_backward(x if needs_weight else None, weight if needs_x else None)
            return result
        ctx.activation = activation
        needs_product = activations.needs_argument(activation)
        ctx.save_for_backward(
            x if needs_weight or needs_product else None,
            weight if needs_x or needs_product else None,
            bias if needs_product else None,
            result if activations.needs_result(activation) else None,
        )
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        """See :func:`gemm_gradient.backward`, which is given the product of all rows."""
        saved = ctx.saved_tensors
        activation = "none" if len(saved) == 2 else ctx.activation
        x, weight, bias, result = (*saved, None, None)[:4]
        _, needs_x, needs_weight, needs_bias, _ = ctx.needs_input_grad
        rows = grad.flatten(0, -2)
        a = None if x is None else x.flatten(0, -2)
        b = None if weight is None else weight.t()
        (m, n), k = rows.shape, a.shape[1] if a is not None else b.shape[0] if b is not None else 0
        output = None if result is None else result.flatten(0, -2)
        product = SimpleNamespace(
            saved_tensors=(a, b, output, *([] if bias is None else [bias])),
            needs_input_grad=(needs_x, needs_weight, [needs_bias]), d_shapes=[(n,)] if needs_bias else [],
            shapes=((m, k), (k, n)), columns=(False, True), factors=False,
            needs_product=activations.needs_argument(activation), activation=activation, alpha=1.0,
            dispatcher="",
        )  # fmt: skip
        of_x, of_weight, of_bias = gemm_gradient.backward(product, rows)
        return (
            None, None if of_x is None else of_x.reshape(*grad.shape[:-1], k),
            None if of_weight is None else of_weight.t(), of_bias[0] if needs_bias else None, None,
        )  # fmt: skip


def learn(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, activation: str | None, result: torch.Tensor,
    generation: int,
) -> None:  # fmt: skip
    """Teach the native road the plan of a layer that the dispatcher in use has just launched, if it can be taught.

    It can be if kernels read all operands in place, and the operands reduce to rows and columns of matrices.
    """
    made = result.detach()

    def lesson(x: torch.Tensor, weight: torch.Tensor, *ds: torch.Tensor) -> Lesson | None:
        if not _may_be_taught(x, weight, ds[0] if ds else None) or made.dtype != x.dtype:
            return None
        return products.planned((x, weight, *ds), x, weight.t(), ds, "add", activation, 1.0, made)

    _TAUGHT.learn((x, weight) if bias is None else (x, weight, bias), activation, generation, lesson)
