"""The linear layers of a transformer: each is a product of A (rows, k) and a weight (n, k)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelwright.tile_engine.problems.models import Model


@dataclass(frozen=True)
class LinearLayer:
    """A weight with n output and k input features.

    :ivar epilogue: the epilogue of the product, such as ``bias_gelu``; empty for none.
    :ivar last_tokens_only: whether the layer sees one row per sequence instead of one per token.
    """

    name: str
    n: int
    k: int
    epilogue: str = ""
    last_tokens_only: bool = False


def linear_layers(model: Model) -> tuple[LinearLayer, ...]:
    """The linear layers of a model; projections that share their input are one product."""
    return (*_attention(model), *_feed_forward(model), *_output(model))


def epilogue_fields(epilogue: str) -> dict[str, Any]:
    """The fields of a GEMM problem that a layer's epilogue, such as ``bias_fast_gelu``, stands for."""
    bias, activation = epilogue.startswith("bias"), epilogue.removeprefix("bias").removeprefix("_")
    fields: dict[str, Any] = {"num_d": 1, "ld_multi_d": (0,)} if bias else {}
    return {**fields, "activation": activation} if activation else fields


def _attention(model: Model) -> Iterator[LinearLayer]:
    bias = "bias" if model.bias else ""
    if model.latent:
        ranks = model.latent
        yield LinearLayer("q and kv, compressed", ranks.q + ranks.kv + ranks.rope, model.hidden)
        yield LinearLayer("q, expanded", model.heads * (ranks.nope + ranks.rope), ranks.q)
        yield LinearLayer("kv, expanded", model.heads * (ranks.nope + ranks.v), ranks.kv)
        yield LinearLayer("attention output", model.hidden, model.heads * ranks.v)
        return
    heads = model.heads + 2 * model.kv_heads
    yield LinearLayer("q, k, v", heads * model.head_dim, model.hidden, bias)
    yield LinearLayer("attention output", model.hidden, model.heads * model.head_dim, bias)


def _feed_forward(model: Model) -> Iterator[LinearLayer]:
    of = " of one expert" if model.experts else ""
    bias = ["bias"] if model.bias else []
    if model.gated:  # the activation reads two columns of the product, which no epilogue of a plain product does
        yield LinearLayer(f"gate and up{of}", 2 * model.ffn, model.hidden, "_".join(bias))
        yield LinearLayer(f"down{of}", model.hidden, model.ffn, "_".join(bias))
    else:
        yield LinearLayer("fc1", model.ffn, model.hidden, "_".join([*bias, model.activation]))
        yield LinearLayer("fc2", model.hidden, model.ffn, "_".join(bias))


def _output(model: Model) -> Iterator[LinearLayer]:
    if model.vocabulary:
        yield LinearLayer("output projection", model.vocabulary, model.hidden, last_tokens_only=True)
