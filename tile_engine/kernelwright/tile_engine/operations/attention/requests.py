"""Lengths of requests, and the problem that an attention record poses to a dispatcher."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.dispatch import AppendProblem, AttentionProblem
from kernelwright.tile_engine.operation import Record

Array = np.ndarray[Any, np.dtype[Any]]
MOST_REQUESTS = 2**16
"""Maximum number of requests of a record: the length of each is listed."""


@dataclass(frozen=True)
class Requests:
    """Rows of each request.

    :ivar queries: rows of Q, or new rows of K and V to append.
    :ivar keys: rows of K and V that a query may see; for a cache, the rows it holds in the end.
    """

    queries: tuple[int, ...]
    keys: tuple[int, ...]


def requests_of(record: Record) -> Requests:
    """Lengths of a record: all equal, or, if ragged, from the stated ones down to about half of them."""

    def lengths(longest: int, differ: bool) -> tuple[int, ...]:
        batch: int = record["batch"]
        if not differ:
            return (longest,) * batch
        return tuple(longest - longest * place // (2 * batch) for place in range(batch))

    queries = lengths(record["seqlen_q"], is_grouped(record))
    return Requests(queries, lengths(record["seqlen_k"], bool(record["ragged"])))


def is_grouped(record: Record) -> bool:
    """Whether the rows of all requests are concatenated. Requests of one query, and appended rows, are not."""
    return bool(record["ragged"]) and record["seqlen_q"] > 1 and record["direction"] != "append"


def problem_of(record: Record) -> AttentionProblem | AppendProblem:
    """The problem of dense tensors, heads inside of rows. Raises ProblemError for an impossible problem."""
    return _append(record) if record["direction"] == "append" else _attention(record)


def lengths_of(record: Record, problem: AttentionProblem | AppendProblem, rng: np.random.Generator) -> dict[str, Array]:
    """Operands that state the places of requests, by name; pages of all requests are in arbitrary order."""
    requests, paged = requests_of(record), record["page_size"] > 0
    operands: dict[str, Array] = {}
    if is_grouped(record):
        operands["cu_seqlens_q"] = _starts(requests.queries)
        if not paged:
            operands["cu_seqlens_k"] = _starts(requests.keys)
    if paged:
        shape = record["batch"], problem.page_table_stride
        operands["page_table"] = rng.permutation(problem.pages).astype(np.int32).reshape(shape)
    keys = np.array(requests.keys, np.int32)
    if isinstance(problem, AppendProblem):
        operands["seqlens_k"] = keys - record["seqlen_q"]
    elif problem.kv_lengths:
        operands["seqlens_k"] = keys
    return operands


def _starts(lengths: Sequence[int]) -> Array:
    return np.array([0, *itertools.accumulate(lengths)], np.int32)


def _attention(record: Record) -> AttentionProblem:
    grouped, paged, requests = is_grouped(record), record["page_size"] > 0, requests_of(record)
    lengths: dict[str, Any] = {"group": grouped, "kv_lengths": paged or (bool(record["ragged"]) and not grouped)}
    if grouped:
        lengths |= {"total_q": sum(requests.queries), "total_k": 0 if paged else sum(requests.keys)}
    bias: dict[str, Any] = {"bias": record["bias"]}
    if record["bias"] == "elementwise":  # one matrix per head, which all requests share
        rows, keys = record["seqlen_q"], record["seqlen_k"]
        bias["bias_strides"] = (0, rows * keys, keys)
    window = None if record["mask"] == "none" else (record["window_left"], record["window_right"])
    return AttentionProblem(
        record["direction"], record["batch"], record["nhead_q"], record["nhead_k"], record["seqlen_q"],
        record["seqlen_k"], record["hdim_q"], record["hdim_v"], dtype=record["dtype"], mask=record["mask"],
        window=window, soft_cap=record["soft_cap"], sink=bool(record["sink"]),
        lse=bool(record["lse"]) and record["direction"] == "forward",
        num_splits=record["num_splits"] if record["direction"] == "forward" else 1,
        deterministic=bool(record["deterministic"]), **lengths, **bias, **_pages(record),
    )  # fmt: skip


def _append(record: Record) -> AppendProblem:
    rotary = record["rotary_dim"]
    turned = {
        "rope": "half", "rotary_dim": rotary, "rotary_places": record["seqlen_k"],
        "heads_q": record["nhead_q"], "seqlen_q": record["seqlen_q"],
    }  # fmt: skip
    return AppendProblem(
        record["batch"], record["nhead_k"], record["seqlen_q"], record["hdim_q"], record["seqlen_k"],
        record["hdim_v"], dtype=record["dtype"], **(turned if rotary else {}), **_pages(record),
    )  # fmt: skip


def _pages(record: Record) -> dict[str, Any]:
    """A block table with as many pages as requests of the maximum length need."""
    size = record["page_size"]
    if not size:
        return {}
    row = -(-record["seqlen_k"] // size)
    return {"page_table": "block", "pages": record["batch"] * row, "page_size": size, "page_table_stride": row}
