"""Public models: the extents that determine the problems of their layers."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from importlib import resources
from typing import Any

from kernelwright.problems.literals import Activation

TUNING, HELD_OUT = PARTS = ("tuning", "held-out")


@dataclass(frozen=True)
class Latent:
    """Latent attention: ranks of the compressed queries and keys, and the extents of a head (DeepSeek-V2, 2.1)."""

    q: int
    kv: int
    rope: int
    nope: int
    v: int


@dataclass(frozen=True)
class Model:
    """A transformer.

    :ivar part: ``tuning`` if kernels, rules and constants may be chosen on its layers, else ``held-out``.
    :ivar hidden: width of the residual stream, in elements, like all extents.
    :ivar ffn: inner width of the feed-forward block, or of one expert in a mixture.
    :ivar gated: whether the block has two input projections, one of which gates the other.
    :ivar experts: number of feed-forward blocks per layer that tokens are routed to; 0 for a dense model.
    :ivar vocabulary: rows of the output projection; 0 without one.
    """

    name: str
    family: str
    part: str
    hidden: int
    heads: int
    ffn: int
    activation: Activation
    kv_heads: int = 0
    head_dim: int = 0
    latent: Latent | None = None
    gated: bool = False
    bias: bool = False
    experts: int = 0
    vocabulary: int = 0


def models() -> tuple[Model, ...]:
    """Every model of ``data/models.json``, in order."""
    text = resources.files(__package__).joinpath("data/models.json").read_text("utf-8")
    return tuple(map(read_model, json.loads(text)["models"]))


def read_model(record: dict[str, Any]) -> Model:
    """Read a model from its JSON record. Raises ValueError for an unknown key or a part that is not in PARTS."""
    if unknown := set(record) - {field.name for field in fields(Model)}:
        raise ValueError(f"{record.get('name')}: unknown keys {sorted(unknown)}")
    if record["part"] not in PARTS:
        raise ValueError(f"{record['name']}: part is {record['part']!r}; allowed: {', '.join(PARTS)}")
    latent = record.get("latent")
    return Model(**{**record, "latent": Latent(**latent) if latent else None})
