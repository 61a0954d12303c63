"""``kernelwright::gemm``: products with D tensors and an activation, in one kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError, dtypes
from kernelwright.torch import dispatchers
from kernelwright.torch.operator import plain, register
from kernelwright.torch.operators import gemm_gradient

_SCHEMA = (
    'gemm(Tensor a, Tensor b, Tensor[] ds, str d_op="add", str activation="none", float alpha=1.0, '
    'ScalarType? out_dtype=None, str dispatcher="") -> Tensor'
)
_WIDER = {"fp16": torch.float16, "int32": torch.int32}  # results of 8-bit operands


def gemm(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    ds: Sequence[torch.Tensor] = (),
    d_op: str = "add",
    activation: str | None = None,
    alpha: float = 1.0,
    out_dtype: torch.dtype | None = None,
    dispatcher: str = "",
) -> torch.Tensor:
    """activation(alpha * a @ b op ds[0] op ds[1] …), by the kernel that the dispatcher in use selects.

    Strides decide the layouts, and no operand is copied: a transposed view is a column-major matrix. The result is
    row-major. Tensors of three dimensions hold a batch of matrices; an ``a`` or ``b`` of two is shared by all products.
    Gradients of ``a``, ``b`` and ``ds`` are products of the same dispatcher. Where autocast is on, floating-point
    operands of 16 bits or more are cast as for torch's own products.

    :param a: A (m, k).
    :param b: B (k, n).
    :param ds: up to four D tensors of the result's dtype, (m, n), or (n,) or (1, n) for one row for all.
    :param d_op: how they are combined with the product, ``"add"`` or ``"multiply"``.
    :param activation: ``"relu"``, ``"gelu"`` (erf form), ``"fast_gelu"`` (tanh form), ``"silu"``, ``"sigmoid"`` or
        ``"tanh"``.
    :param out_dtype: dtype of the result; by default that of ``a``, float16 for 8-bit floats, int32 for int8.
    :param dispatcher: the name that :func:`use` gave a dispatcher.
    :raises DispatcherNotFoundError: if none is in use for the device of ``a``.
    :raises ArrayError: for tensors that do not fit together, that no kernel addresses, or that require grad and have
        8 bits.
    :raises NoKernelError: if no kernel serves the product, or in the backward pass one of its gradients.
    """
    a, b, ds = _autocast(a, b, ds, out_dtype)
    return OPERATOR(a, b, list(ds), d_op, activation or "none", alpha, out_dtype, dispatcher)


def linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    activation: str | None = None,
    dispatcher: str = "",
) -> torch.Tensor:
    """activation(x @ weight.T + bias) in one kernel, as :func:`torch.nn.functional.linear` with an activation.

    :param x: (…, k).
    :param weight: (n, k).
    :param bias: (n,), of the dtype of ``x``.
    :returns: (…, n).

    Everything else is as for :func:`gemm`.
    """
    rows = x.reshape(-1, x.shape[-1])
    ds = () if bias is None else (bias,)
    result = gemm(rows, weight.t(), ds=ds, activation=activation, dispatcher=dispatcher)
    return result.reshape(*x.shape[:-1], weight.shape[0])


def _autocast(
    a: torch.Tensor, b: torch.Tensor, ds: Sequence[torch.Tensor], out_dtype: torch.dtype | None
) -> tuple[torch.Tensor, torch.Tensor, Sequence[torch.Tensor]]:
    kind = a.device.type
    if kind not in ("cpu", "cuda") or not torch.is_autocast_enabled(kind):
        return a, b, ds
    if not a.is_floating_point() or a.element_size() < 2:
        return a, b, ds
    dtype = torch.get_autocast_dtype(kind)
    return a.to(dtype), b.to(dtype), [d.to(out_dtype or dtype) for d in ds]


def _run(
    a: torch.Tensor, b: torch.Tensor, ds: list[torch.Tensor], d_op: str = "add", activation: str = "none",
    alpha: float = 1.0, out_dtype: torch.dtype | None = None, dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    found = dispatchers.find(dispatcher, a.device)
    a, b, ds = plain(a), plain(b), [plain(d) for d in ds]
    out = a.new_empty(_shape(a, b), dtype=_dtype(a, out_dtype))
    return found.gemm(a, b, out=out, ds=ds, d_op=d_op, activation=activation, alpha=alpha)


def _fake(
    a: torch.Tensor, b: torch.Tensor, ds: list[torch.Tensor], d_op: str = "add", activation: str = "none",
    alpha: float = 1.0, out_dtype: torch.dtype | None = None, dispatcher: str = "",
) -> torch.Tensor:  # fmt: skip
    shape = _shape(a, b)
    torch._check(
        a.shape[-1] == b.shape[-2],
        lambda: (
            f"a is {tuple(a.shape)} and b is {tuple(b.shape)}: k is {a.shape[-1]} and {b.shape[-2]}; they must be equal"
        ),
    )
    return a.new_empty(shape, dtype=_dtype(a, out_dtype))


def _shape(a: torch.Tensor, b: torch.Tensor) -> tuple[Any, ...]:
    """Shape of the result; extents may be symbols. The dispatcher checks whether the operands fit."""
    for name, operand in (("a", a), ("b", b)):
        if operand.dim() not in (2, 3):
            raise ArrayError(
                f"{name} has shape {tuple(operand.shape)}; allowed: two dimensions, or three for a batch of matrices"
            )
    matrix = (a.shape[-2], b.shape[-1])
    if a.dim() == b.dim() == 2:
        return matrix
    if a.dim() != b.dim():
        return ((a if a.dim() == 3 else b).shape[0], *matrix)
    return (a.shape[0] if b.shape[0] == 1 else b.shape[0], *matrix)


def _dtype(a: torch.Tensor, out_dtype: torch.dtype | None) -> torch.dtype:
    if out_dtype is not None:
        return out_dtype
    own = dtypes.name_of(a.dtype)[0]
    result = dtypes.RESULT.get(own, own)
    return a.dtype if result == own else _WIDER[result]


OPERATOR = register(_SCHEMA, _run, _fake, gemm_gradient.save, gemm_gradient.backward)
