"""Shared code of the attention operators: dtypes, dropout, unsupported gradients, and advice about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.dispatch import ArrayError, NoKernelError, ProblemError
from kernelwright.problems.scalars import real
from kernelwright.torch.operator import TransformError


def check_dtypes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
    """Raise ArrayError unless all three have one dtype, as torch requires."""
    if not query.dtype == key.dtype == value.dtype:
        raise ArrayError(
            f"query is {query.dtype}, key {key.dtype} and value {value.dtype}; allowed: one dtype; pass "
            "key.to(query.dtype) and value.to(query.dtype)"
        )


def dropout(share: float) -> tuple[float, bool]:
    """The fraction that kernels drop, and whether anything is kept: if all is dropped, kernels drop nothing and the
    caller multiplies by 0. Raises ProblemError for a number outside of 0 to 1.
    """
    share = real("dropout_p", share)
    if not 0 <= share <= 1:
        raise ProblemError(f"dropout_p is {share}; allowed: from 0 to 1; pass the share that is dropped")
    return (0.0, False) if share == 1 else (share, True)


def records(*operands: torch.Tensor | None) -> bool:
    """Whether a gradient may be requested, which needs LSE. Under ``torch.func`` tensors do not reveal outer levels."""
    if not torch.is_grad_enabled():
        return False
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        return True
    return any(one is not None and one.requires_grad for one in operands)


def features(a: Any) -> dict[str, Any]:
    """Operator arguments other than operands. Raises ArrayError for a seed that is not two int64 on the CPU."""
    first = offset = 0
    if a.seed is not None:
        if a.seed.dtype != torch.int64 or tuple(a.seed.shape) != (2,) or a.seed.device.type != "cpu":
            raise ArrayError(
                f"seed is {a.seed.dtype} {tuple(a.seed.shape)} on {a.seed.device}; allowed: torch.int64 (2,) on cpu,"
                " not negative"
            )
        first, offset = map(int, a.seed.tolist())
    return {
        "mask": a.mask, "window": None if a.mask == "none" else (a.window_left, a.window_right), "scale": a.scale,
        "soft_cap": a.soft_cap, "dropout_p": a.dropout_p, "seed": first, "offset": offset,
    }  # fmt: skip


def check_gradients(
    named: Sequence[tuple[str, torch.Tensor]], slopes: torch.Tensor | None, others: Sequence[torch.Tensor | None],
    with_lse: bool,
) -> None:  # fmt: skip
    """Raise ArrayError if an unsupported gradient is requested. ``others`` have gradients, too."""
    for name, operand in named:
        if operand.requires_grad and operand.element_size() == 1:
            raise ArrayError(
                f"{name} requires grad and is {operand.dtype}; gradients are computed for float32, float16 and "
                f"bfloat16: pass {name}.detach(), or operands of these"
            )
    if slopes is not None and slopes.requires_grad:
        raise ArrayError("alibi_slopes requires grad, but has no gradient; pass alibi_slopes.detach()")
    operands = [*(operand for _, operand in named), *others]
    if not with_lse and any(one is not None and one.requires_grad for one in operands):
        raise ArrayError("with_lse is False and an operand requires grad; gradients need LSE")


@contextmanager
def with_advice(dropout_p: float, soft_cap: float, with_dbias: bool = False) -> Iterator[None]:
    """Add advice to the NoKernelError of gradients that no kernel computes because of these features."""
    try:
        yield
    except NoKernelError as error:
        ways = {
            "attn_mask.detach(), whose gradient is not computed": with_dbias,
            "dropout_p=0, with dropout behind the attention instead": dropout_p > 0,
            "soft_cap=0": soft_cap > 0,
        }
        asked = [way for way, is_asked in ways.items() if is_asked]
        if not asked:
            raise
        why = f"{error.reason}; not every backend has gradients of this: pass {' and '.join(asked)}"
        raise NoKernelError(why, *error.advice) from error


def of_sinks(sinks: torch.Tensor, lse: torch.Tensor, d: torch.Tensor) -> torch.Tensor:
    """The gradient of sinks from LSE and D = rowsum(dO * O), both (…, heads, rows).

    With P = exp(sink - LSE) it is minus the sum of P * D: a sink has no value, only a part in the sums.
    """
    p = torch.exp(sinks[:, None] - lse).masked_fill(sinks[:, None] == -torch.inf, 0)
    return -(p * d).sum((*range(d.dim() - 2), -1)).to(sinks.dtype)


def no_second_derivative(operator: str) -> tuple[Callable[..., None], Callable[..., Any]]:
    """Return ``save`` and ``backward`` of a gradient's own operator: one keeps nothing, the other raises."""

    def save(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        raise TransformError(
            f"kernelwright::{operator} has no second derivative; allowed: first derivatives; call "
            "torch.nn.functional.scaled_dot_product_attention"
        )

    return save, backward
