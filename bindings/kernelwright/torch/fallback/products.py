"""Products computed by torch's own operators, for :mod:`kernelwright.torch.operators.gemm`."""

from __future__ import annotations

from collections.abc import Sequence

import torch  # pants: no-infer-dep
from kernelwright.torch import activations
from torch.nn import functional  # pants: no-infer-dep


def linear(
    x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None, activation: str | None = None,
    dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    """The fallback of :func:`kernelwright.torch.linear`."""
    result = functional.linear(x, weight, bias)
    return result if activation is None else activations.apply(activation, result)


def gemm(
    a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], d_op: str = "add", activation: str | None = "none",
    alpha: float = 1.0, out_dtype: torch.dtype | None = None, dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    """The fallback of :func:`kernelwright.torch.gemm`: shapes as in ``torch.matmul``; a result is rounded once."""
    converts = out_dtype is not None and out_dtype != a.dtype
    if converts:
        wide = torch.promote_types(a.dtype, out_dtype)
        a, b = a.to(wide), b.to(wide)
    elif alpha == 1.0 and d_op == "add" and a.dim() == b.dim() == 2 and [d.dim() for d in ds] == [1]:
        return activations.apply(activation, torch.addmm(ds[0], a, b))
    result = torch.matmul(a, b)
    result = result if alpha == 1.0 else result * alpha
    for d in ds:
        result = result * d if d_op == "multiply" else result + d
    result = activations.apply(activation, result)
    return result.to(out_dtype) if converts else result


def operator(
    a: torch.Tensor, b: torch.Tensor, ds: list[torch.Tensor], d_op: str = "add", activation: str = "none",
    alpha: float = 1.0, out_dtype: torch.dtype | None = None, dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    """The fallback of ``kernelwright::gemm``, below autograd: the result is row-major and has no gradient."""
    with torch.no_grad():
        return gemm(a, b, ds, d_op, activation, alpha, out_dtype).contiguous()
