"""Attention problems of models: prompts, decoding, gradients and appending, each with some lengths and requests."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kernelwright.tile_engine.operation import ProblemSets, Record
from kernelwright.tile_engine.problems.attention_models import Heads, attention_layers
from kernelwright.tile_engine.problems.models import HELD_OUT, PARTS, TUNING, models

Fields = dict[str, Any]
_Kinds = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Lengths:
    """Rows of prompts, keys of caches and rows of training sequences, several of each kind, and numbers of requests.

    :ivar tokens: rows of an image or a sentence; empty for those of the model.
    """

    prompts: _Kinds
    contexts: _Kinds
    sequences: _Kinds
    requests: tuple[int, ...]
    tokens: tuple[int, ...] = ()


LENGTHS = Lengths(
    ((7, 40, 100, 128), (200, 512, 777, 1000), (1024, 1100, 2048, 3000), (4096, 6000, 8192, 16384)),
    ((120, 512, 1100), (2048, 3000, 4096), (8192, 10000, 16384), (32768, 65536, 131072)),
    ((100, 128, 257), (512, 777, 1000), (1024, 2048, 3000), (4096, 8192, 6000)),
    (1, 7, 16, 40, 64, 128, 256),
)
# More for training: no other problem has them.
BETWEEN = Lengths(
    ((20, 64, 90, 150), (256, 300, 384, 640), (1200, 1500, 1800, 2500), (3500, 5000, 7000, 12000)),
    ((200, 300, 800), (1500, 2500, 6000), (7000, 12000, 24000), (20000, 49152, 98304)),
    ((64, 150, 200), (300, 400, 640), (1200, 1500, 2500), (3500, 5000, 7000)),
    (2, 4, 11, 24, 32, 50, 96),
    (150, 300, 640, 1369, 2500, 5000),
)
_IMAGES = (1, 8, 32)
_PAGES = (16, 64)
_MOST_ROWS = 1 << 14  # queries over all requests
_MOST_ELEMENTS = 1 << 27  # elements of K, so that a set of operands fits on every device
_DTYPES = ("fp32", "fp16", "bf16")


def _prompts(one: Heads, place: int, lengths: Lengths) -> Iterator[Fields]:
    """Whole prompts, ragged ones, and every third time the continuation of a cached prefix."""
    for kind, rows in enumerate(lengths.prompts):
        queries = rows[(place + kind) % len(rows)]
        cached = rows[(place + kind + 1) % len(rows)] if (place + kind) % 3 == 2 else 0
        batch = _requests(one, lengths, place + kind, queries, queries + cached)
        paged = {"page_size": _PAGES[place % 2]} if cached else {}
        ragged = {"ragged": 1} if batch > 1 and (cached or kind % 2) else {}
        yield {"batch": batch, "seqlen_q": queries, "seqlen_k": queries + cached, **_causal(one), **paged, **ragged}


def _decoding(one: Heads, place: int, lengths: Lengths) -> Iterator[Fields]:
    """One query per request; one time in four three, as in speculative decoding."""
    for kind, keys in enumerate(lengths.contexts):
        for turn in range(2):
            length = keys[(place + kind) % len(keys)]
            batch = _requests(one, lengths, place + 3 * turn + kind, 1, length)
            queries = 3 if (place + kind + turn) % 4 == 3 else 1
            mask = _causal(one) if queries > 1 or one.window >= 0 else {}
            extents = {"batch": batch, "seqlen_q": queries, "seqlen_k": length}
            ragged = {"ragged": 1} if batch > 1 and queries == 1 else {}
            yield {**extents, "page_size": _PAGES[(place + turn) % 2], **mask, **ragged}


def _gradients(one: Heads, place: int, lengths: Lengths) -> Iterator[Fields]:
    for kind, rows in enumerate(lengths.sequences):
        length = rows[(place + kind) % len(rows)]
        batch = min(4, _requests(one, lengths, place + kind, length, length))
        fixed = {"deterministic": 1} if (place + kind) % 2 else {}
        yield {"direction": "backward", "batch": batch, "seqlen_q": length, **_causal(one), **fixed}


def _appending(one: Heads, place: int, lengths: Lengths) -> Iterator[Fields]:
    """One new row per request, or a prompt's."""
    for kind, keys in enumerate(lengths.contexts):
        length = keys[(place + kind) % len(keys)]
        rows = 1 if kind % 2 else min(length, lengths.prompts[0][place % 4])
        batch = _requests(one, lengths, place + kind, rows, length)
        rotary = one.hdim_q if one.hdim_q % 16 == 0 and one.bias == "none" else 0
        cache = {"page_size": _PAGES[(place + kind) % 2], "rotary_dim": rotary}
        yield {"direction": "append", "batch": batch, "seqlen_q": rows, "seqlen_k": length, **cache}


_USES: Mapping[str, Callable[[Heads, int, Lengths], Iterator[Fields]]] = {
    "prefill": _prompts, "decode": _decoding, "backward": _gradients, "append": _appending,
}  # fmt: skip
# Queries and keys: one off the tile sizes of kernels, fewer queries than keys, and more.
_EDGES = ((1, 1), (1, 2), (1, 129), (2, 1), (7, 65), (63, 63), (65, 63), (64, 128), (127, 129), (129, 127), (257, 1023))
_EDGE_HEADS = ((1, 1, 64, 64), (3, 1, 128, 128), (4, 2, 40, 40), (8, 8, 72, 72), (5, 5, 96, 96), (2, 2, 192, 128))
_EDGE_WINDOWS = ((0, 0), (1, 0), (63, 0), (65, 0), (0, 1), (127, 129))  # keys to the left and to the right
_EDGE_CACHES = (1, 2, 15, 17, 63, 65, 127, 129, 255, 257, 1023, 1025)  # keys, around page and split boundaries
_EDGE_SETS = {f"attention-edges-{dtype}": dtype for dtype in _DTYPES}
_SETS = {f"attention-{part}-{use}-{dtype}": (part, use, dtype) for part in PARTS for use in _USES for dtype in _DTYPES}
# Uses that leave a choice; each layer takes turns through all lengths of a kind.
_OPEN, _TURNS = ("prefill", "decode", "backward"), 4
_WHOLE = {
    f"attention-{name}-{dtype}": (part, dtype, lengths)
    for name, part, lengths in (
        ("validation", HELD_OUT, LENGTHS),
        ("tuning-all", TUNING, LENGTHS),
        ("tuning-between", TUNING, BETWEEN),
    )
    for dtype in _DTYPES
}


def attention_problems(part: str, use: str, turn: int = 0, lengths: Lengths = LENGTHS) -> Iterator[Fields]:
    """The problems of a part's models, without element type; some may occur twice.

    Held-out layers with the heads and score modifications of a tuning layer are left out, whatever their lengths. Each
    ``turn`` pairs the layers with other lengths and requests. Raises ValueError for a part that is not in PARTS.
    """
    if part not in PARTS:
        raise ValueError(f"no part of the models is called {part!r}; allowed: {', '.join(PARTS)}")
    tuned = {replace(one, tokens=()) for one in _layers(TUNING)} if part == HELD_OUT else set()
    for place, one in enumerate(_layers(part)):
        if replace(one, tokens=()) not in tuned:
            for fields in _images(one, place, use, lengths) if one.tokens else _USES[use](one, place + turn, lengths):
                yield {**_extents(one, fields), **fields}


def _layers(part: str) -> tuple[Heads, ...]:
    return tuple(dict.fromkeys(one for model in models() if model.part == part for one in attention_layers(model)))


def _images(one: Heads, place: int, use: str, lengths: Lengths) -> Iterator[Fields]:
    """Problems of models without a cache: forward and gradients of whole images or sentences."""
    directions = {"prefill": "forward", "backward": "backward"}
    if use in directions:
        for kind, rows in enumerate(lengths.tokens or one.tokens):
            for turn, batch in enumerate(_IMAGES[: 3 if use == "prefill" else 2]):
                fixed = {"deterministic": 1} if use == "backward" and (place + kind + turn) % 2 else {}
                batch = min(batch, max(1, _MOST_ROWS // rows))
                yield {"direction": directions[use], "batch": batch, "seqlen_q": rows, **fixed}


def _requests(one: Heads, lengths: Lengths, place: int, queries: int, keys: int) -> int:
    """Number of requests of a problem: one of those stated, or as many as the problem limits allow."""
    most = min(_MOST_ROWS // queries, _MOST_ELEMENTS // (keys * one.kv * max(one.hdim_q, one.hdim_v)))
    return max(1, min(lengths.requests[place % len(lengths.requests)], most))


def _causal(one: Heads) -> Fields:
    return {"mask": "bottom_right", **({"window_left": one.window} if one.window >= 0 else {})}


def _extents(one: Heads, fields: Fields) -> Fields:
    heads = {"nhead_q": one.q, "nhead_k": one.kv, "hdim_q": one.hdim_q, "hdim_v": one.hdim_v}
    if fields.get("direction") == "append":
        return heads
    scores = {"bias": one.bias, "soft_cap": one.soft_cap}
    return {**heads, **scores, **({"sink": 1} if one.sink and fields.get("direction") != "backward" else {})}


def _records(named: str) -> Iterator[Record]:
    if named in _EDGE_SETS:
        yield from ({**fields, "dtype": _EDGE_SETS[named]} for fields in _edges())
        return
    if named in _WHOLE:
        part, dtype, lengths = _WHOLE[named]
        for turn, use in itertools.product(range(_TURNS), _OPEN):
            for fields in attention_problems(part, use, turn, lengths):
                yield {**fields, "dtype": dtype}
        return
    part, use, dtype = _SETS[named]
    for fields in attention_problems(part, use):
        yield {**fields, "dtype": dtype}


def _edges() -> Iterator[Fields]:
    """Each pair of lengths forward and backward, masks in turns; windows; reads of and appends to caches."""
    for place, (queries, keys) in enumerate(_EDGES):
        for turn, direction in enumerate(("forward", "backward")):
            mask = ("none", "top_left", "bottom_right")[(place + turn) % 3]
            yield {
                "direction": direction,
                "batch": 2,
                "seqlen_q": queries,
                "seqlen_k": keys,
                **_edge_heads(place + turn),
                "mask": mask,
            }
    for place, (left, right) in enumerate(_EDGE_WINDOWS):
        window = {"mask": "bottom_right", "window_left": left, "window_right": right}
        yield {"batch": 1, "seqlen_q": 130, "seqlen_k": 257, **_edge_heads(place), **window}
    for place, keys in enumerate(_EDGE_CACHES):
        cache = {"batch": 3, "seqlen_k": keys, "page_size": _PAGES[place % 2], **_edge_heads(place)}
        splits = {"num_splits": (0, 1, 3)[place % 3]}
        yield {"seqlen_q": 1, **cache, **splits, "ragged": place % 2}
        yield {"direction": "append", "seqlen_q": 1 + place % 2 if keys > 1 else 1, **cache}


def _edge_heads(place: int) -> Fields:
    return dict(zip(("nhead_q", "nhead_k", "hdim_q", "hdim_v"), _EDGE_HEADS[place % len(_EDGE_HEADS)], strict=True))


ATTENTION_SETS = ProblemSets((*_SETS, *_WHOLE, *_EDGE_SETS), _records)
