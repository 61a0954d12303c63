"""Products of transformers: linear layers with their epilogues and gradients, batches, and experts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kernelwright.dispatch import GemmProblem, GroupedGemmProblem
from kernelwright.problems.literals import GemmLayout
from kernelwright.tile_engine.coverage.layer_problem import LayerProblem, drawn
from kernelwright.tile_engine.problems.linear_layers import LinearLayer, epilogue_fields, linear_layers
from kernelwright.tile_engine.problems.models import Model, models

_MOST_ROWS = 16384
_ROWS = 4  # numbers of rows for each layer
_MOST_TOKENS = 4096  # of a sequence whose scores are computed by batched products
_EXPERTS = 8  # experts in a launch
_RESIDUAL = ("attention output", "fc2", "down", "down of one expert")  # layers whose result is added to the stream


def linear_problems(dtype: str) -> Iterator[LayerProblem]:
    """Every product of every model.

    A weight W is (n, k) as in torch: ``forward`` is x·Wᵀ (layout ``rcr``), the gradient of the input dy·W (``rrr``),
    the gradient of the weight dyᵀ·x (``crr``). A residual is a D tensor of the result's shape, a bias one line.
    """
    for model in models():
        for layer in linear_layers(model):
            for rows in drawn(f"{model.name} {layer.name}", _ROWS, _MOST_ROWS):
                yield from _layer(model, layer, rows, dtype)
        if model.gated:
            yield from _gated(model, dtype)
        if not model.latent:
            yield from _batched(model, dtype)
        if model.experts:
            yield from _grouped(model, dtype)


def _layer(model: Model, layer: LinearLayer, rows: int, dtype: str) -> Iterator[LayerProblem]:
    def made(use: str, m: int, n: int, k: int, layout: GemmLayout, **rest: Any) -> LayerProblem:
        return LayerProblem(
            "gemm", use, dtype, f"{model.name}: {layer.name}", GemmProblem(m, n, k, dtype=dtype, layout=layout, **rest)
        )

    yield made("forward", rows, layer.n, layer.k, "rcr")
    epilogue = epilogue_fields(layer.epilogue)
    if epilogue:
        yield made("forward, bias and activation", rows, layer.n, layer.k, "rcr", **epilogue)
    if layer.name in _RESIDUAL:
        lines = (*epilogue.get("ld_multi_d", ()), layer.n)
        residual = {**epilogue, "num_d": len(lines), "ld_multi_d": lines}
        yield made("forward, residual", rows, layer.n, layer.k, "rcr", **residual)
    if layer.last_tokens_only:
        yield made("forward, fp32 result", rows, layer.n, layer.k, "rcr", dtype_c="fp32")
    yield made("gradient of the input", rows, layer.k, layer.n, "rrr")
    yield made("gradient of the weight", layer.n, layer.k, rows, "crr")
    yield made("gradient added in fp32", layer.n, layer.k, rows, "crr", dtype_c="fp32", beta=1.0)


def _gated(model: Model, dtype: str) -> Iterator[LayerProblem]:
    """The two input projections of a gated block: act(x·G), and x·U multiplied by it."""
    for rows in drawn(f"{model.name} gate", _ROWS, _MOST_ROWS):
        shape, layer = (rows, model.ffn, model.hidden), f"{model.name}: gate and up"
        gate = GemmProblem(*shape, dtype=dtype, activation=model.activation)
        yield LayerProblem("gemm", "gated pair", dtype, layer, gate)
        yield LayerProblem(
            "gemm", "gated pair", dtype, layer, GemmProblem(*shape, dtype=dtype, num_d=1, d_op="multiply")
        )


def _batched(model: Model, dtype: str) -> Iterator[LayerProblem]:
    """Scores and their products with the values, per head, as in code without fused attention."""
    for tokens in drawn(f"{model.name} scores", _ROWS, _MOST_TOKENS):
        layer = f"{model.name}: attention by products"
        heads: dict[str, Any] = {"batch": model.heads, "dtype": dtype}
        yield LayerProblem("gemm", "batched", dtype, layer, GemmProblem(tokens, tokens, model.head_dim, **heads))
        values = GemmProblem(tokens, model.head_dim, tokens, layout="rrr", **heads)
        yield LayerProblem("gemm", "batched", dtype, layer, values)


def _grouped(model: Model, dtype: str) -> Iterator[LayerProblem]:
    """Products of experts, each with as many rows as tokens routed to it; one expert gets none."""
    rows = (0, *drawn(f"{model.name} experts", min(model.experts, _EXPERTS) - 1, _MOST_ROWS // _EXPERTS))
    for n, k in ((2 * model.ffn if model.gated else model.ffn, model.hidden), (model.hidden, model.ffn)):
        problem = GroupedGemmProblem([(m, n, k) for m in rows], dtype=dtype)
        yield LayerProblem("gemm", "grouped", dtype, f"{model.name}: experts", problem)
