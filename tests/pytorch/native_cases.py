"""Operators on the native road beside torch's, with operands that kernels read where they lie."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest
import torch
from torch.nn import functional

from kernelwright.torch import conv1d, conv2d, conv3d, gemm, report, scaled_dot_product_attention
from kernelwright.torch.fallback.strictness import STRICTNESS

Tensors = tuple[torch.Tensor, ...]
BASIC = ("gemm", "conv2d", "attention")


def native(operator: str) -> int:
    return sum(one.native for one in report().operators if one.operator == operator)


def close(actual: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(actual, wanted, rtol=1e-3, atol=1e-3)


@contextmanager
def lenient() -> Iterator[None]:
    """Where torch may compute what no kernel serves, in the middle of strict tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(STRICTNESS, "on", False)
        yield


class Case(NamedTuple):
    """An operator beside torch's, with operands of these shapes."""

    operator: str
    ours: Callable[..., Any]
    torchs: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]

    def operands(self, grad: bool = False, dtype: torch.dtype = torch.float32) -> Tensors:
        made = [torch.randn(shape, dtype=dtype) for shape in self.shapes]
        if self.operator == "conv":
            dims = len(self.shapes[1])
            made = [innermost(one) if one.dim() in (1, dims) else innermost(one[None])[0] for one in made]
        return tuple(one.requires_grad_(grad) for one in made)


def innermost(one: torch.Tensor) -> torch.Tensor:
    return one.movedim(1, -1).contiguous().movedim(-1, 1) if one.dim() > 2 else one


def attended(*given: Any, **options: Any) -> Any:
    return functional.scaled_dot_product_attention(*given, **options)


def masked(call: Any) -> Any:
    return lambda q, k, v, mask: call(q, k, v, mask)


def heads_last(call: Any) -> Any:
    """Heads beside each other in memory, as projections leave them; torch gives extents of 1 any stride."""
    return lambda *qkv: call(*(one.transpose(1, 2) for one in qkv))


CASES: dict[str, Case] = {
    "gemm": Case("gemm", gemm, torch.matmul, ((5, 64), (64, 48))),
    "gemm of a batch": Case("gemm", gemm, torch.matmul, ((3, 5, 64), (3, 64, 48))),
    "gemm of rows": Case("gemm", gemm, torch.matmul, ((2, 3, 5, 64), (64, 48))),
    "gemm of a row": Case("gemm", gemm, torch.matmul, ((64,), (64, 48))),
    "gemm with a bias": Case(
        "gemm", lambda a, b, d: gemm(a, b, ds=[d]), lambda a, b, d: a @ b + d, ((5, 64), (64, 48), (48,))
    ),
    "gemm with a residual and relu": Case(
        "gemm", lambda a, b, d: gemm(a, b, ds=[d], activation="relu"), lambda a, b, d: torch.relu(a @ b + d),
        ((5, 64), (64, 48), (5, 48)),
    ),
    "gemm with a factor": Case(
        "gemm", lambda a, b, d: gemm(a, b, ds=[d], d_op="multiply", alpha=0.5), lambda a, b, d: 0.5 * (a @ b) * d,
        ((5, 64), (64, 48), (5, 48)),
    ),
    "conv1d": Case("conv", conv1d, functional.conv1d, ((2, 8, 9), (6, 8, 3))),
    "conv2d": Case(
        "conv", lambda x, w: conv2d(x, w, stride=2, padding=(1, 0)),
        lambda x, w: functional.conv2d(x, w, stride=2, padding=(1, 0)), ((2, 8, 9, 7), (6, 8, 3, 3)),
    ),
    "conv2d of one image": Case(
        "conv", lambda x, w, b: conv2d(x, w, b, padding="same"),
        lambda x, w, b: functional.conv2d(x, w, b, padding="same"), ((8, 9, 7), (6, 8, 3, 3), (6,)),
    ),
    "conv2d in groups": Case(
        "conv", lambda x, w: conv2d(x, w, groups=2), lambda x, w: functional.conv2d(x, w, groups=2),
        ((2, 8, 9, 7), (6, 4, 3, 3)),
    ),
    "conv2d with bias and relu": Case(
        "conv", lambda x, w, b: conv2d(x, w, b, activation="relu"),
        lambda x, w, b: torch.relu(functional.conv2d(x, w, b)), ((2, 8, 9, 7), (6, 8, 3, 3), (6,)),
    ),
    "conv2d with a residual": Case(
        "conv", lambda x, w, r: conv2d(x, w, residual=r), lambda x, w, r: functional.conv2d(x, w) + r,
        ((2, 8, 9, 7), (6, 8, 3, 3), (2, 6, 7, 5)),
    ),
    "conv2d with bias, residual and relu": Case(
        "conv", lambda x, w, b, r: conv2d(x, w, b, residual=r, activation="relu"),
        lambda x, w, b, r: torch.relu(functional.conv2d(x, w, b) + r),
        ((2, 8, 9, 7), (6, 8, 3, 3), (6,), (2, 6, 7, 5)),
    ),
    "conv3d": Case("conv", conv3d, functional.conv3d, ((1, 4, 5, 6, 7), (3, 4, 2, 2, 2))),
    "attention": Case("attention", scaled_dot_product_attention, attended, ((2, 3, 5, 32),) * 3),
    "causal attention": Case(
        "attention", lambda *qkv: scaled_dot_product_attention(*qkv, is_causal=True, scale=0.25),
        lambda *qkv: attended(*qkv, is_causal=True, scale=0.25), ((2, 3, 5, 32),) * 3,
    ),
    "attention of shared heads": Case(
        "attention", lambda *qkv: scaled_dot_product_attention(*qkv, enable_gqa=True),
        lambda *qkv: attended(*qkv, enable_gqa=True), ((2, 4, 5, 32), (2, 2, 7, 32), (2, 2, 7, 32)),
    ),
    "attention of one sequence": Case("attention", heads_last(scaled_dot_product_attention), heads_last(attended),
                                      ((1, 5, 3, 32),) * 3),
    "attention of one query": Case("attention", heads_last(scaled_dot_product_attention), heads_last(attended),
                                   ((2, 1, 3, 32), (2, 5, 3, 32), (2, 5, 3, 32))),
    "attention with a mask": Case(
        "attention", masked(scaled_dot_product_attention), masked(attended),
        (*((2, 3, 5, 32),) * 3, (1, 1, 5, 5)),
    ),
}  # fmt: skip
KEEPS_RESULT = re.compile("attention|relu")  # for the gradient, as torch does
COPIED: dict[str, Case] = {
    "gemm of broadcast batches": Case("gemm", gemm, torch.matmul, ((2, 1, 5, 64), (3, 64, 48))),
    "attention with a boolean mask": Case(
        "attention", lambda q, k, v: scaled_dot_product_attention(q, k, v, torch.ones(5, 5, dtype=torch.bool)),
        attended, ((2, 3, 5, 32),) * 3,
    ),
    "contiguous images": Case("conv", lambda x, w: conv2d(x.contiguous(), w), functional.conv2d,
                              ((2, 8, 9, 7), (6, 8, 3, 3))),
}  # fmt: skip
NOT_RECORDED = {"attention of one head": ((5, 32),) * 3, "attention of five dimensions": ((2, 1, 3, 5, 32),) * 3}
