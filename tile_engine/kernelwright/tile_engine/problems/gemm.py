"""GEMM problems of models: the linear layers, each with some numbers of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

from kernelwright.tile_engine.operation import ProblemSets, Record
from kernelwright.tile_engine.problems.linear_layers import linear_layers
from kernelwright.tile_engine.problems.models import HELD_OUT, PARTS, TUNING, models

# Rows of A, which are tokens: decoding one sequence, decoding a batch, a short prompt, a prompt, a batch of prompts.
ROWS: tuple[tuple[int, ...], ...] = (
    (1, 2, 4, 7, 8),
    (16, 17, 32, 40, 64),
    (100, 120, 128, 200, 256),
    (333, 512, 777, 1000, 1024, 1100),
    (2048, 3000, 4096, 8192, 16384),
)
_LAST_TOKENS = 3  # kinds of ROWS for a layer of last tokens
# N and K of shapes of no tuning model on which kernels and constants were nevertheless chosen before models were read:
# those of benchmarks/shapes/tuned.json that a held-out model has too.
_TUNED_BEFORE = {(6144, 6144)}
# Of operands, and of results if they differ from GemmProblem's default.
_DTYPES = {"fp32": "", "fp16": "", "bf16": "", "fp8": "bf16", "int8": ""}
# One off powers of two, and fewer than any tile has.
EDGES = (1, 2, 3, 7, 8, 15, 17, 31, 33, 63, 65, 127, 129, 255, 257, 1023, 1025)
_EDGES = {f"gemm-edges-{dtype}": dtype for dtype in _DTYPES}
_SETS = {f"gemm-{part}-{dtype}": (part, dtype) for part in PARTS for dtype in _DTYPES}
_TALL = {f"gemm-tuning-tall-{dtype}": dtype for dtype in _DTYPES}
_FEW = {f"gemm-{part}-few-{dtype}": (part, dtype) for part in PARTS for dtype in _DTYPES}


@dataclass(frozen=True)
class LayerProblem:
    """One product of A (m, k) and B (k, n), and the layer it comes from."""

    m: int
    n: int
    k: int
    epilogue: str
    model: str
    family: str
    layer: str


def layer_problems(part: str) -> tuple[LayerProblem, ...]:
    """The problems of a part's models, each shape once: no (m, n, k, epilogue) occurs twice.

    A held-out model may have a weight with extents that something was tuned on; that layer is left out. A layer gets
    one number of rows of each kind of ROWS. Which one follows from the layer's position in the list, so that adding a
    model at its end changes no other problem. Raises ValueError for a part that is not in PARTS.
    """
    if part not in PARTS:
        raise ValueError(f"no part of the models is called {part!r}; allowed: {', '.join(PARTS)}")
    problems = list(_problems(part))
    if part == HELD_OUT:
        tuned = _TUNED_BEFORE | {(problem.n, problem.k) for problem in _problems(TUNING)}
        problems = [problem for problem in problems if (problem.n, problem.k) not in tuned]
    unique = {(p.m, p.n, p.k, p.epilogue): p for p in reversed(problems)}
    return tuple(reversed(unique.values()))


@cache
def weights() -> Mapping[tuple[int, int], tuple[str, str]]:
    """The first model with a linear layer of extents (n, k), and the layer, by extents."""
    by_extents: dict[tuple[int, int], tuple[str, str]] = {}
    for model in models():
        for layer in linear_layers(model):
            by_extents.setdefault((layer.n, layer.k), (model.name, layer.name))
    return by_extents


def tall_problems() -> tuple[LayerProblem, ...]:
    """Tuning layers with K at least twice N, with all numbers of rows for which split-K is a choice.

    They come in addition to ``layer_problems`` and are not among them.
    """
    problems = layer_problems(TUNING)
    known = {(one.m, one.n, one.k) for one in problems}
    by_shape: dict[tuple[int, int, int], LayerProblem] = {}
    for one in problems:
        for m in (rows for kind in ROWS[1:-1] for rows in kind):
            if one.k >= 2 * one.n and (m, one.n, one.k) not in known:
                by_shape.setdefault((m, one.n, one.k), replace(one, m=m))
    return tuple(by_shape.values())


def few_rows_problems(part: str) -> tuple[LayerProblem, ...]:
    """The layers of a part with every other number of rows from 1 to 256: typical work for a CPU.

    They come in addition to ``layer_problems`` and are not among them.
    """
    problems = layer_problems(part)
    known = {(one.m, one.n, one.k) for one in problems}
    by_shape: dict[tuple[int, int, int], LayerProblem] = {}
    for m in (rows for kind in ROWS[:_LAST_TOKENS] for rows in kind):
        for one in problems:
            if (m, one.n, one.k) not in known:
                by_shape.setdefault((m, one.n, one.k), replace(one, m=m))
    return tuple(by_shape.values())


def _problems(part: str) -> Iterator[LayerProblem]:
    place = 0
    for model in models():
        if model.part != part:
            continue
        for layer in linear_layers(model):
            kinds = ROWS[:_LAST_TOKENS] if layer.last_tokens_only else ROWS
            for kind, rows in enumerate(kinds):
                m = rows[(place + 2 * kind) % len(rows)]
                yield LayerProblem(m, layer.n, layer.k, layer.epilogue, model.name, model.family, layer.name)
            place += 1


def _records(named: str) -> Iterator[Record]:
    if named in _EDGES:
        dtype, extents = _EDGES[named], list(_edges())
    elif named in _TALL:
        dtype, extents = _TALL[named], [(one.m, one.n, one.k) for one in tall_problems()]
    elif named in _FEW:
        part, dtype = _FEW[named]
        extents = [(one.m, one.n, one.k) for one in few_rows_problems(part)]
    else:
        part, dtype = _SETS[named]
        extents = [(one.m, one.n, one.k) for one in layer_problems(part)]
    for m, n, k in extents:
        yield {"m": m, "n": n, "k": k, "dtype": dtype, "dtype_c": _DTYPES[dtype]}


def _edges() -> Iterator[tuple[int, int, int]]:
    """Each edge value as each extent beside two that fill tiles, and with two other edge values."""
    for place, edge in enumerate(EDGES):
        yield from ((edge, 512, 512), (512, edge, 512), (512, 512, edge))
        yield edge, EDGES[(place + 5) % len(EDGES)], EDGES[(place + 11) % len(EDGES)]


GEMM_SETS = ProblemSets((*_SETS, *_TALL, *_FEW, *_EDGES), _records)
