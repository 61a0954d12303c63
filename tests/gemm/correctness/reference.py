"""What a GEMM of any variant must give: in float64, and computed plainly in the kernel's own precision."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def _sigmoid(x: Array) -> Array:
    with np.errstate(over="ignore"):
        result: Array = 1 / (1 + np.exp(-x))
    return result


_erf = np.vectorize(math.erf, otypes=[np.float64])

# Of any float dtype, computed in it (erf in float64). Sources: Hendrycks, Gimpel, "Gaussian Error Linear Units", 2016,
# section 2, for gelu and fast_gelu (its tanh form: tanh(x) = 2 sigmoid(2x) - 1); Elfwing, Uchibe, Doya,
# "Sigmoid-weighted linear units", 2018, for silu.
ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "none": lambda x: x,
    "relu": lambda x: np.maximum(x, x.dtype.type(0)),
    "gelu": lambda x: (x * 0.5 * (1 + _erf(x / math.sqrt(2.0)) if x.size else x)).astype(x.dtype),
    "fast_gelu": lambda x: x * _sigmoid(2 * x.dtype.type(0.797885) * (x + x.dtype.type(0.044715) * x * x * x)),
    "silu": lambda x: x * _sigmoid(x),
    "sigmoid": _sigmoid,
    "tanh": np.tanh,
}
PIECEWISE_LINEAR = ("none", "relu")  # of whole numbers they give whole numbers
# The largest slope of each: by how much it can enlarge an error. gelu's is at sqrt(2), silu's at about 2.4.
_SLOPE = {"none": 1.0, "relu": 1.0, "gelu": 1.13, "fast_gelu": 1.13, "silu": 1.1, "sigmoid": 0.25, "tanh": 1.0}


@dataclass(frozen=True)
class Inputs:
    """A (batch, m, k), B (batch, k, n), C or None and every D (batch, m, n), as their kernel reads them."""

    a: Array
    b: Array
    c: Array | None
    ds: tuple[Array, ...]
    alpha: float
    beta: float
    d_op: str
    activation: str
    dtype: np.dtype[Any]  # of the result

    @property
    def integers(self) -> bool:
        """Whether sums are kept in int32."""
        return self.dtype.kind == "i"


def exact(inputs: Inputs) -> Array:
    """act((alpha A·B + beta C) op D0 op D1 …) in float64, unrounded."""
    return ACTIVATIONS[inputs.activation](_before(inputs, inputs.a.astype(np.float64) @ inputs.b.astype(np.float64)))


def scale(inputs: Inputs) -> Array:
    """The size of what each element is summed from: errors are counted relative to it, never relative to a sum that
    happens to cancel."""
    sizes = replace(
        inputs,
        c=None if inputs.c is None else np.abs(inputs.c.astype(np.float64)),
        ds=tuple(np.abs(d.astype(np.float64)) for d in inputs.ds),
        alpha=abs(inputs.alpha),
        beta=abs(inputs.beta),
    )
    products = np.abs(inputs.a.astype(np.float64)) @ np.abs(inputs.b.astype(np.float64))
    # Sigmoid, tanh and their products give numbers near 1, or flush what is tiny: there, 1 is the size.
    least = 0.0 if inputs.activation in PIECEWISE_LINEAR else 1.0
    size: Array = np.maximum(_SLOPE[inputs.activation] * _before(sizes, products), least)
    return size


def plain(inputs: Inputs) -> Array:
    """The same with sums in fp32, one product after the other, and one rounding at the end: what "a reference run in
    the same precision" means where no library offers one."""
    kind = np.int64 if inputs.integers else np.float32
    a, b = inputs.a.astype(kind), inputs.b.astype(kind)
    total: Array = np.zeros((*a.shape[:-1], b.shape[-1]), kind)
    for i in range(a.shape[-1]):
        total += a[..., :, i, None] * b[..., None, i, :]
    return ACTIVATIONS[inputs.activation](_before(inputs, total)).astype(inputs.dtype)


def _before(inputs: Inputs, products: Array) -> Array:
    """What the activation is applied to, in the dtype of ``products``."""
    kind = products.dtype.type
    result = products if inputs.alpha == 1 else kind(inputs.alpha) * products
    if inputs.c is not None and inputs.beta != 0:
        result = result + kind(inputs.beta) * inputs.c.astype(kind)
    for d in inputs.ds:
        result = result * d.astype(kind) if inputs.d_op == "multiply" else result + d.astype(kind)
    return result


def rounded(values: Array, dtype: np.dtype[Any]) -> Array:
    """float64 as a kernel stores it: through its 32-bit accumulator, each step to nearest even."""
    return values.astype(dtype) if dtype.kind == "i" else values.astype(np.float32).astype(dtype)


def error(result: Array, expected: Array, size: Array) -> float:
    """The largest error of an element relative to its size; NaN where the result has one, 0 without elements."""
    if not result.size:
        return 0.0
    difference = np.abs(result.astype(np.float64) - expected)
    return float(np.max(difference / np.maximum(size, np.finfo(np.float64).tiny)))


def allowed_error(samples: Sequence[Inputs], run: Callable[[Inputs], Array] = plain) -> float:
    """Twice the largest error of reference runs, at least a rounding of fp32. Integers: 0."""
    if samples[0].integers:
        return 0.0
    return max(2.0**-24, *(2 * error(run(inputs), exact(inputs), scale(inputs)) for inputs in samples))
