"""``gemm`` on the native road: what it learns of a product, and gradients of those that it has computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.problems.gemm.structs import GemmArgs
from kernelwright.torch import dispatchers
from kernelwright.torch.operators import gemm_gradient, gemm_shapes
from kernelwright.torch.operators.native.taught import Lesson, Taught, records, same_memory
from kernelwright.torch.road import launch, launch_all

_TAUGHT = Taught("gemm", "gemm")
_KINDS = _TAUGHT.kinds
_D_BYTES = 8  # between addresses of D tensors


def places(ds: int) -> tuple[list[int], list[int]]:
    """Where the addresses of A, B and so many D tensors stand in the argument struct, and that of the result."""
    first = GemmArgs.multi_d.offset
    return [GemmArgs.a.offset, GemmArgs.b.offset, *(first + _D_BYTES * at for at in range(ds))], [GemmArgs.d.offset]


def gemm(
    a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: str, activation: str | None, alpha: float,
    out_dtype: torch.dtype | None,
) -> Any:  # fmt: skip
    """The product, with its gradient recorded; None where the Python road must be taken."""
    if type(alpha) is not float:  # True and 1 would be found where 1.0 was
        return None
    option = d_op, activation, alpha, out_dtype
    result = launch_all(_KINDS, option, (a, b, *ds)) if ds else launch(_KINDS, option, a, b)
    if result is None or not records():
        return result
    if a.requires_grad or b.requires_grad or any(d.requires_grad for d in ds):
        return _recorded(result, a, b, ds, d_op, activation, alpha)
    return result


def _recorded(
    result: torch.Tensor, a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: str,
    activation: str | None, alpha: float,
) -> Any:  # fmt: skip
    word = "none" if activation is None else activation
    if a.dim() == b.dim() == 2 and all(_lies_beside(d, result.shape) for d in ds):
        return _Gemm.apply((result,), a, b, d_op, word, alpha, *ds)
    # Autograd records the views that make matrices of the operands. The result is nobody's yet: it becomes no view.
    product = gemm_shapes.as_product(a, b, ds, ["a", "b", *(f"ds[{number}]" for number in range(len(ds)))])
    whole = result if product.shape is None else result.view(gemm_shapes.result_shape(product.a, product.b)).data
    recorded = _Gemm.apply((whole,), product.a, product.b, d_op, word, alpha, *product.ds)
    return recorded if product.shape is None else recorded.reshape(product.shape)


def _lies_beside(d: torch.Tensor, shape: Sequence[int]) -> bool:
    """Whether the operator takes a D tensor as it is: whole rows, or one for all."""
    return bool(d.shape == shape) or (d.dim() == 1 and d.shape[0] == shape[1])


class _Gemm(torch.autograd.function._SingleLevelFunction):  # type: ignore[misc]
    """Records a product that has been computed. No transform is active."""

    @staticmethod
    def forward(
        ctx: Any, computed: Any, a: Any, b: Any, d_op: str, activation: str, alpha: float, *ds: Any
    ) -> torch.Tensor:
        """The result, which is the only element of ``computed``: no input, which autograd would make a view of."""
        result: torch.Tensor = computed[0]
        gemm_gradient.save(ctx, (a, b, ds, d_op, activation, alpha, None, ""), result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> tuple[Any, ...]:
        """See :func:`gemm_gradient.backward`."""
        needed = ctx.needs_input_grad
        ctx.needs_input_grad = *needed[1:3], needed[6:]
        try:
            of_a, of_b, of_ds = gemm_gradient.backward(ctx, grad)
        finally:
            ctx.needs_input_grad = needed
        return None, of_a, of_b, None, None, None, *of_ds


def learn(
    a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: str, activation: str | None, alpha: float,
    out_dtype: torch.dtype | None, result: torch.Tensor, generation: int,
) -> None:  # fmt: skip
    """Teach the native road the plan of a product that the dispatcher in use has just computed, where it can be taught.

    It can where kernels read all operands where they lie.
    """
    if type(alpha) is not float or not alpha or alpha != alpha:  # -0.0 would be found where 0.0 was
        return
    made = result.detach()

    def lesson(a: torch.Tensor, b: torch.Tensor, *ds: torch.Tensor) -> Lesson | None:
        return planned((a, b, *ds), a, b, ds, d_op, activation, alpha, made)

    _TAUGHT.learn((a, b, *ds), (d_op, activation, alpha, out_dtype), generation, lesson)


def planned(
    given: Sequence[torch.Tensor], a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: Any,
    activation: Any, alpha: float, result: torch.Tensor,
) -> Lesson | None:  # fmt: skip
    """The plan of the product ``a @ b`` of what was ``given``; None where a copy of it would be read."""
    if not result.is_contiguous():
        return None
    product = gemm_shapes.as_product(a, b, ds, ["a", "b", *(f"ds[{number}]" for number in range(len(ds)))])
    a, b = gemm_shapes.addressable("a", product.a), gemm_shapes.addressable("b", product.b)
    ds = [gemm_shapes.addressable("d", d, row_major=True) for d in product.ds]
    if not same_memory((a, b, *ds), given):
        return None
    in_use = dispatchers.find("", a.device)
    out = result.view(gemm_shapes.result_shape(a, b))
    plan = in_use.plan_gemm(a, b, out=out, ds=ds, d_op=d_op, activation=activation or "none", alpha=alpha)
    return Lesson(in_use, plan, (result,), places(len(ds)))
