"""The reference against formulas written out one by one, against differences, and against torch where there is one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from attention.masks import BOTTOM_RIGHT, FULL, TOP_LEFT, Window, visible
from attention.reference import Features, backward, forward
from attention.splits import combine, split_forward

Array = np.ndarray[Any, np.dtype[Any]]
HEADS, QUERIES, KEYS, D, DV = 4, 5, 7, 6, 3


def operands(kv_heads: int = 2, seed: int = 0) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng(seed)
    shapes = ((HEADS, QUERIES, D), (kv_heads, KEYS, D), (kv_heads, KEYS, DV), (HEADS, QUERIES, DV))
    q, k, v, do = (rng.standard_normal(shape) for shape in shapes)
    return q, k, v, do


def everything(seed: int = 1) -> Features:
    rng = np.random.default_rng(seed)
    return Features(
        scale=0.7,
        bias=rng.standard_normal((HEADS, QUERIES, KEYS)),
        slopes=rng.random(HEADS),
        window=Window(3, 1, bottom_right=True),
        sinks=rng.standard_normal(HEADS),
        kept=rng.random((HEADS, QUERIES, KEYS)) < 0.7,
        keep=0.7,
    )


VARIANTS = {
    "plain": Features(),
    "scale": Features(scale=0.3),
    "cap": Features(scale=2.0, soft_cap=1.5),
    "bias": Features(bias=np.random.default_rng(2).standard_normal((HEADS, QUERIES, KEYS))),
    "slopes": Features(slopes=np.array([0.5, 0.25, 1.0, 2.0])),
    "top left": Features(window=TOP_LEFT),
    "bottom right": Features(window=BOTTOM_RIGHT),
    "slopes, top left": Features(window=TOP_LEFT, slopes=np.array([0.5, 0.25, 1.0, 2.0])),
    "window": Features(window=Window(2, 1)),
    "sinks": Features(sinks=np.array([0.0, 1.0, -2.0, 5.0])),
    "dropout": replace(everything(), bias=None, slopes=None, window=FULL, sinks=None),
    "everything": everything(),
    "everything, capped": replace(everything(), bias=None, slopes=None, soft_cap=2.0),
}


def one_by_one(q: Array, k: Array, v: Array, f: Features) -> tuple[Array, Array]:
    """Scalars only: the formulas as they are written in papers."""
    o, lse = np.zeros((HEADS, QUERIES, DV)), np.full((HEADS, QUERIES), -math.inf)
    ratio = HEADS // len(k)
    scale = 1 / math.sqrt(D) if f.scale is None else f.scale
    for h, i in itertools.product(range(HEADS), range(QUERIES)):
        weights = {}
        for j in range(KEYS):
            place = i + (KEYS - QUERIES if f.window.bottom_right else 0)
            if f.window.left >= 0 and j < place - f.window.left:
                continue
            if f.window.right >= 0 and j > place + f.window.right:
                continue
            score = scale * sum(q[h, i, e] * k[h // ratio, j, e] for e in range(D))
            if f.soft_cap:
                score = f.soft_cap * math.tanh(score / f.soft_cap)
            if f.bias is not None:
                score += f.bias[h, i, j]
            if f.slopes is not None:
                end = KEYS - QUERIES if f.window == FULL or f.window.bottom_right else 0
                score -= f.slopes[h] * abs(i + end - j)
            weights[j] = math.exp(score)
        total = sum(weights.values()) + (0.0 if f.sinks is None else math.exp(f.sinks[h]))
        lse[h, i] = math.log(total) if total else -math.inf
        for j, weight in weights.items():
            dropped = 1.0 if f.kept is None else f.kept[h, i, j] / f.keep
            o[h, i] += weight / total * dropped * v[h // ratio, j]
    return o, lse


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
@pytest.mark.parametrize("features", VARIANTS.values(), ids=VARIANTS)
def test_forward_is_what_the_formulas_say(features: Features, kv_heads: int) -> None:
    q, k, v, _ = operands(kv_heads)
    o, lse = one_by_one(q, k, v, features)
    actual = forward(q, k, v, features)
    np.testing.assert_allclose(actual.o, o, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(actual.lse, lse, rtol=1e-12, atol=1e-14)


def slope(function: Callable[[Array], float], at: Array) -> Array:
    """The gradient of a function by central differences."""
    gradient = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        step = np.zeros_like(at)
        step[index] = 1e-5
        gradient[index] = (function(at + step) - function(at - step)) / 2e-5
    return gradient


@pytest.mark.parametrize("features", VARIANTS.values(), ids=VARIANTS)
def test_gradients_are_those_of_the_forward_pass(features: Features) -> None:
    q, k, v, do = operands()

    def value(q: Array, k: Array, v: Array, features: Features = features) -> float:
        return float((forward(q, k, v, features).o * do).sum())

    gradients = backward(q, k, v, do, features)
    np.testing.assert_allclose(gradients.dq, slope(lambda x: value(x, k, v), q), atol=1e-8)
    np.testing.assert_allclose(gradients.dk, slope(lambda x: value(q, x, v), k), atol=1e-8)
    np.testing.assert_allclose(gradients.dv, slope(lambda x: value(q, k, x), v), atol=1e-8)
    np.testing.assert_allclose(gradients.d, (do * forward(q, k, v, features).o).sum(-1), atol=1e-12)
    if features.bias is not None:
        by_bias = slope(lambda x: value(q, k, v, replace(features, bias=x)), features.bias)
        np.testing.assert_allclose(gradients.dbias, by_bias, atol=1e-8)


def test_masks_by_hand() -> None:
    assert visible(2, 3, FULL).all()
    assert visible(2, 3, TOP_LEFT).tolist() == [[True, False, False], [True, True, False]]
    assert visible(2, 3, BOTTOM_RIGHT).tolist() == [[True, True, False], [True, True, True]]
    assert visible(3, 3, Window(0, 1)).tolist() == [[True, True, False], [False, True, True], [False, False, True]]
    assert visible(3, 2, BOTTOM_RIGHT).tolist() == [[False, False], [True, False], [True, True]]


def test_rows_that_see_nothing_are_zeros() -> None:
    q, k, v, do = operands()
    features = Features(window=Window(0, 0, bottom_right=False))
    output = forward(q, k[:, :3], v[:, :3], features)
    assert (output.o[:, 3:] == 0).all() and np.isneginf(output.lse[:, 3:]).all() and np.isfinite(output.o).all()
    gradients = backward(q, k[:, :3], v[:, :3], do, features)
    assert (gradients.dq[:, 3:] == 0).all() and np.isfinite(gradients.dk).all()
    none = forward(q, k[:, :0], v[:, :0])
    assert (none.o == 0).all() and np.isneginf(none.lse).all()
    with_sinks = forward(q, k[:, :3], v[:, :3], replace(features, sinks=np.arange(4.0)))
    np.testing.assert_allclose(with_sinks.lse[:, 4], np.arange(4.0))


@pytest.mark.parametrize("bounds", [(0, 7), (0, 3, 7), (0, 1, 1, 2, 6, 7)])
@pytest.mark.parametrize("name", ["plain", "cap", "bias", "slopes", "top left", "bottom right", "window"])
def test_parts_combine_to_the_whole(name: str, bounds: tuple[int, ...]) -> None:
    q, k, v, _ = operands()
    o, lse = combine(*split_forward(q, k, v, bounds, VARIANTS[name]))
    whole = forward(q, k, v, VARIANTS[name])
    np.testing.assert_allclose(o, whole.o, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(lse, whole.lse, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["plain", "scale", "bias", "top left", "dropout"])
def test_torch_agrees(name: str) -> None:
    torch = pytest.importorskip("torch")
    features = replace(VARIANTS[name], kept=None)
    q, k, v, do = operands()
    tensors = [torch.tensor(x, requires_grad=True) for x in (q, k, v)]
    mask = None if features.bias is None else torch.tensor(features.bias)
    o = torch.nn.functional.scaled_dot_product_attention(
        *tensors, attn_mask=mask, is_causal=features.window == TOP_LEFT, scale=features.scale, enable_gqa=True
    )
    o.backward(torch.tensor(do))
    gradients = backward(q, k, v, do, features)
    np.testing.assert_allclose(forward(q, k, v, features).o, o.detach().numpy(), rtol=1e-10, atol=1e-12)
    for ours, tensor in zip((gradients.dq, gradients.dk, gradients.dv), tensors, strict=True):
        np.testing.assert_allclose(ours, tensor.grad.numpy(), rtol=1e-9, atol=1e-12)
