"""Attention problems of models: prompts, decoding, appending to a cache, and gradients."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.tile_engine.coverage.layer_problem import LayerProblem
from kernelwright.tile_engine.problems.attention import attention_problems
from kernelwright.tile_engine.problems.models import PARTS
from kernelwright.tile_engine.registry import measurable

_USES = {"prefill": "prefill", "decode": "decode", "append": "append to a cache", "backward": "gradients"}


def attention_layers(dtype: str) -> Iterator[LayerProblem]:
    """Each model's heads and head dimension, with its window, sink, soft cap, ALiBi or bias, in every use."""
    attention = measurable("attention")
    for part in PARTS:
        for key, use in _USES.items():
            for fields in attention_problems(part, key):
                record = attention.read({**fields, "dtype": dtype})
                heads = "x".join(str(record[name]) for name in ("nhead_q", "nhead_k", "hdim_q", "hdim_v"))
                yield LayerProblem("attention", use, dtype, f"heads {heads}", attention.problem(record))
