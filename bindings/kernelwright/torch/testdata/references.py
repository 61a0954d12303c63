"""A GEMM by torch's own operators, in any precision, with gradients; and the error allowed to a kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch  # pants: no-infer-dep
from kernelwright.problems.literals import Activation, DOp
from kernelwright.torch import gemm
from torch.nn import functional  # pants: no-infer-dep

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "none": lambda x: x,
    "relu": torch.relu,
    "gelu": functional.gelu,
    "fast_gelu": lambda x: functional.gelu(x, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
}

Product = Callable[["Case"], Any]


@dataclass(frozen=True)
class Case:
    """Operands of a product; those that require grad have one afterwards."""

    a: Any
    b: Any
    ds: Sequence[Any] = ()
    d_op: DOp = "add"
    activation: Activation = "none"
    alpha: float = 1.0
    out_dtype: Any = None

    @property
    def operands(self) -> list[Any]:
        """A, B and the D tensors."""
        return [self.a, self.b, *self.ds]

    def copy(self, dtype: Any = None) -> Case:
        """A copy in separate memory, with the same layout; in ``dtype`` if it is given."""

        def one(tensor: Any) -> Any:
            made = tensor.detach().to(dtype or tensor.dtype, copy=True, memory_format=torch.preserve_format)
            return made.requires_grad_(tensor.requires_grad)

        made = replace(self, a=one(self.a), b=one(self.b), ds=[one(d) for d in self.ds])
        return made if dtype is None else replace(made, out_dtype=None)


def by_torch(case: Case) -> Any:
    """The product in the precision of its operands."""
    before = case.alpha * (case.a @ case.b).to(case.out_dtype or case.a.dtype)
    for d in case.ds:
        before = before * d if case.d_op == "multiply" else before + d
    return ACTIVATIONS[case.activation](before)


def by_kernel(case: Case) -> Any:
    """The product by the dispatcher in use."""
    return gemm(
        case.a, case.b, ds=case.ds, d_op=case.d_op, activation=case.activation, alpha=case.alpha,
        out_dtype=case.out_dtype,
    )  # fmt: skip


def results(case: Case, product: Product, weights: Any) -> list[Any]:
    """The result of a product, and the gradients of ``sum(weights * result)`` for operands that require one."""
    result = product(case)
    wanted = [operand for operand in case.operands if operand.requires_grad]
    grads = torch.autograd.grad((result * weights.to(result.dtype)).sum(), wanted) if wanted else ()
    return [result.detach(), *grads]


def check(case: Case, product: Product, rounding: float = 2.0**-23) -> None:
    """Check that results and gradients have at most twice the error of torch's own in the same precision.

    Errors are those of whole tensors, relative to the float64 result. ``rounding`` is that of the result's dtype: no
    result needs to be closer.
    """
    weights = torch.randn(by_torch(case.copy()).shape, device=case.a.device)
    exact = results(case.copy(torch.float64), by_torch, weights)
    plain = results(case.copy(), by_torch, weights)
    ours = results(case.copy(), product, weights)
    names = ["result", *(f"gradient {number}" for number in range(len(exact) - 1))]
    for name, one, reference, wanted in zip(names, ours, plain, exact, strict=True):
        assert one.shape == wanted.shape and one.dtype == reference.dtype, name
        allowed = max(2 * _error(reference, wanted), rounding)
        assert _error(one, wanted) <= allowed, f"{name}: {_error(one, wanted):.3g}; allowed: {allowed:.3g}"


def _error(output: Any, exact: Any) -> float:
    if not exact.numel():
        return 0.0
    return float((output.double() - exact).norm() / exact.norm().clamp_min(1e-300))
