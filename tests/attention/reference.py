"""What attention must give: forward and backward of one request in float64, with every feature of the kernels.

Q is heads x queries x d, K heads x keys x d and V heads x keys x dv; each head of K and V serves as many heads of Q in
a row as there are more of them (GQA).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from attention.masks import FULL, Window, alibi, visible

Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Features:
    """What is done to the scores scale * Q·Kᵀ, in this order: cap, bias (elementwise, ALiBi), mask, sink, dropout.

    ``scale`` is 1/sqrt(d) unless stated; 0 is no cap. ``bias`` is heads x queries x keys, ``slopes`` and ``sinks`` have
    one number for each head of Q. ``kept`` says which probabilities dropout keeps, each divided by ``keep``.
    """

    scale: float | None = None
    soft_cap: float = 0.0
    bias: Array | None = None
    slopes: Array | None = None
    window: Window = FULL
    sinks: Array | None = None
    kept: Array | None = None
    keep: float = 1.0


PLAIN = Features()


@dataclass(frozen=True)
class Forward:
    """O, the logarithm of each row's sum of exponentials, and the probabilities before dropout.

    A row that sees nothing has O = 0 and LSE = -inf, or the sink's score.
    """

    o: Array
    lse: Array
    p: Array


@dataclass(frozen=True)
class Backward:
    """Gradients, and D, the row sums of dO * O."""

    dq: Array
    dk: Array
    dv: Array
    dbias: Array
    d: Array


def forward(q: Array, k: Array, v: Array, features: Features = PLAIN) -> Forward:
    """Attention of one request."""
    s = _scores(q, k, features)
    p, lse = _softmax(s, features.sinks)
    o = _dropped(p, features) @ _repeated(v, q)
    return Forward(o, lse, p)


def backward(q: Array, k: Array, v: Array, do: Array, features: Features = PLAIN) -> Backward:
    """The gradients of sum(O * dO)."""
    done = forward(q, k, v, features)
    do = do.astype(np.float64)
    d = (do * done.o).sum(-1)
    dp = do @ _repeated(v, q).transpose(0, 2, 1)
    if features.kept is not None:
        dp = np.where(features.kept, dp / features.keep, 0.0)
    ds = done.p * (dp - d[..., None])
    dbias = ds
    if features.soft_cap:
        capped = np.tanh(_plain(q, k, features) / features.soft_cap)
        ds = ds * (1 - capped**2)
    ds = ds * _scale(q, features)
    dq = ds @ _repeated(k, q)
    dk = ds.transpose(0, 2, 1) @ q.astype(np.float64)
    dv = _dropped(done.p, features).transpose(0, 2, 1) @ do
    return Backward(dq, _summed(dk, k), _summed(dv, v), dbias, d)


def _scale(q: Array, features: Features) -> float:
    return 1 / math.sqrt(q.shape[-1]) if features.scale is None else features.scale


def _plain(q: Array, k: Array, features: Features) -> Array:
    plain: Array = q.astype(np.float64) @ _repeated(k, q).transpose(0, 2, 1) * _scale(q, features)
    return plain


def _scores(q: Array, k: Array, features: Features) -> Array:
    s = _plain(q, k, features)
    if features.soft_cap:
        s = features.soft_cap * np.tanh(s / features.soft_cap)
    if features.bias is not None:
        s = s + features.bias.astype(np.float64)
    queries, keys = s.shape[1:]
    if features.slopes is not None:
        bottom_right = features.window == FULL or features.window.bottom_right
        s = s + alibi(queries, keys, features.slopes, bottom_right)
    return np.where(visible(queries, keys, features.window), s, -np.inf)


def _softmax(s: Array, sinks: Array | None) -> tuple[Array, Array]:
    """Probabilities and LSE; sinks take part in the sums only."""
    top = s.max(-1, keepdims=True, initial=-np.inf)
    if sinks is not None:
        top = np.maximum(top, sinks.astype(np.float64)[:, None, None])
    top = np.where(np.isinf(top), 0.0, top)
    e = np.exp(s - top)
    total = e.sum(-1, keepdims=True)
    if sinks is not None:
        total = total + np.exp(sinks.astype(np.float64)[:, None, None] - top)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + top)[..., 0]
    return e / np.where(total == 0, 1.0, total), lse


def _dropped(p: Array, features: Features) -> Array:
    return p if features.kept is None else np.where(features.kept, p / features.keep, 0.0)


def _repeated(x: Array, q: Array) -> Array:
    """K or V for each head of Q."""
    return np.repeat(x.astype(np.float64), q.shape[0] // x.shape[0], axis=0)


def _summed(gradient: Array, x: Array) -> Array:
    """The gradient of K or V from those for each head of Q."""
    heads = x.shape[0]
    summed: Array = gradient.reshape(heads, gradient.shape[0] // heads, *gradient.shape[1:]).sum(1)
    return summed
