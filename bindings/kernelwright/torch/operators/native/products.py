"""Products on the native road without gradients: their plans, and products of backward passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.problems.gemm.structs import GemmArgs
from kernelwright.torch import dispatchers
from kernelwright.torch.fallback import decisions
from kernelwright.torch.operators import gemm_shapes
from kernelwright.torch.operators.native.taught import Lesson, Taught, records, same_memory
from kernelwright.torch.road import ROAD, launch

_DECISIONS = decisions.of("gemm")
_TAUGHT = Taught("gemm")
_KINDS = _TAUGHT.kinds
_D_BYTES = 8  # bytes between addresses of D tensors


def places(ds: int) -> tuple[list[int], list[int]]:
    """Offsets of the addresses of A, B and this many D tensors in the argument struct, and the result's offset."""
    first = GemmArgs.multi_d.offset
    return [GemmArgs.a.offset, GemmArgs.b.offset, *(first + _D_BYTES * at for at in range(ds))], [GemmArgs.d.offset]


def planned(
    given: Sequence[torch.Tensor], a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: Any,
    activation: Any, alpha: float, result: torch.Tensor,
) -> Lesson | None:  # fmt: skip
    """The plan of the product ``a @ b`` of the operands ``given``; None if a copy of one would be read."""
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


def product(a: torch.Tensor, b: torch.Tensor, alpha: float, dtype: torch.dtype, dispatcher: str) -> torch.Tensor:
    """alpha * a @ b of matrices or batches, for backward passes.

    Runs the operator ``kernelwright::gemm`` if the native road does not know the product. Raises NoKernelError in
    ``strict()`` regions.
    """
    given: Any = a, b, [], "add", "none", alpha, dtype, dispatcher
    operator = torch.ops.kernelwright.gemm.default
    if ROAD.why_not or dispatcher or records():
        result: torch.Tensor = operator(*given)
        return result
    option = alpha, dtype
    result = launch(_KINDS, option, a, b)
    if result is not None:
        return result
    generation, before = ROAD.generation, _DECISIONS.ours
    result = made = operator(*given)
    if _DECISIONS.ours != before and alpha and alpha == alpha:  # -0.0 would match an entry for 0.0

        def lesson(a: torch.Tensor, b: torch.Tensor) -> Lesson | None:
            return planned((a, b), a, b, (), "add", None, alpha, made.detach())

        _TAUGHT.learn((a, b), option, generation, lesson)
    return result
