"""Attention in parts of the keys, and one result out of the parts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from attention.masks import FULL, alibi, visible
from attention.reference import PLAIN, Features, forward

Array = np.ndarray[Any, np.dtype[Any]]


def split_forward(
    q: Array, k: Array, v: Array, bounds: Sequence[int], features: Features = PLAIN
) -> tuple[Array, Array]:
    """O (splits x heads x queries x dv) and LSE (splits x heads x queries) of the keys between neighbouring bounds.

    Masks and slopes count places among all keys. Sinks and dropout belong to the whole and are refused.
    """
    assert features.sinks is None and features.kept is None
    queries, keys = q.shape[1], k.shape[1]
    seen = visible(queries, keys, features.window)
    bias = np.zeros((q.shape[0], queries, keys)) if features.bias is None else features.bias.astype(np.float64)
    if features.slopes is not None:
        bias = bias + alibi(queries, keys, features.slopes, features.window == FULL or features.window.bottom_right)
    bias = np.where(seen, bias, -np.inf)
    parts = []
    for low, high in itertools.pairwise(bounds):
        own = Features(scale=features.scale, soft_cap=features.soft_cap, bias=bias[:, :, low:high])
        parts.append(forward(q, k[:, low:high], v[:, low:high], own))
    return np.stack([part.o for part in parts]), np.stack([part.lse for part in parts])


def combine(o: Array, lse: Array) -> tuple[Array, Array]:
    """O and LSE of the whole from those of its splits; splits that see nothing have LSE = -inf."""
    top = lse.max(0)
    safe = np.where(np.isinf(top), 0.0, top)
    weights = np.exp(lse - safe)
    total = weights.sum(0)
    with np.errstate(divide="ignore"):
        whole = np.log(total) + safe
    return (weights[..., None] * o).sum(0) / np.where(total == 0, 1.0, total)[..., None], whole
