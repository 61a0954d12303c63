"""The attention of public models: heads, and modifications of scores."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from kernelwright.tile_engine.problems.models import Model, models

_KEYS = ("window", "soft_cap", "sinks", "bias", "tokens")


@dataclass(frozen=True)
class Heads:
    """One layer of attention; extents are in elements.

    :ivar window: keys to the left that a query sees, -1 for all.
    :ivar tokens: rows of an image or a sentence, with full attention among them; empty for causal attention.
    """

    q: int
    kv: int
    hdim_q: int
    hdim_v: int
    window: int = -1
    soft_cap: float = 0.0
    sink: bool = False
    bias: str = "none"
    tokens: tuple[int, ...] = ()


def attention_layers(model: Model) -> Iterator[Heads]:
    """The distinct layers of a model: the one with a window first, if some of its layers have one."""
    known = _features().get(model.name, {})
    if unknown := set(known) - set(_KEYS):
        raise ValueError(f"{model.name}: unknown keys {sorted(unknown)}; allowed: {', '.join(_KEYS)}")
    latent = model.latent
    if latent:  # as computed for prompts: every head has its own keys and values
        extents = (model.heads, model.heads, latent.nope + latent.rope, latent.v)
    else:
        extents = (model.heads, model.kv_heads, model.head_dim, model.head_dim)
    rest: dict[str, Any] = {"soft_cap": float(known.get("soft_cap", 0)), "sink": bool(known.get("sinks"))}
    rest["bias"] = known.get("bias", "none")
    if "window" in known:
        yield Heads(*extents, window=known["window"], **rest)
    yield Heads(*extents, tokens=tuple(known.get("tokens", ())), **rest)


@cache
def attention_origins() -> Mapping[tuple[int, ...], tuple[str, str]]:
    """The first model with heads of these numbers and sizes (q, kv, hdim_q, hdim_v), and a description of them."""
    by_heads: dict[tuple[int, ...], tuple[str, str]] = {}
    for model in models():
        for one in attention_layers(model):
            words = f"{one.q} heads of Q, {one.kv} of K and V"
            by_heads.setdefault((one.q, one.kv, one.hdim_q, one.hdim_v), (model.name, words))
    return by_heads


@cache
def _features() -> Mapping[str, Mapping[str, Any]]:
    """Features by model name. Raises ValueError for an unknown name."""
    text = resources.files(__package__).joinpath("data/attention_models.json").read_text("utf-8")
    features: Mapping[str, Mapping[str, Any]] = json.loads(text)["models"]
    if unknown := set(features) - {model.name for model in models()}:
        raise ValueError(f"attention_models.json names {', '.join(sorted(unknown))}; allowed: models of models.json")
    return features
