"""From an attention problem to the record on which its kernels take as long."""

from __future__ import annotations

import dataclasses
from typing import Any

from kernelwright.dispatch import AppendProblem, AttentionProblem
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.operations.attention.requests import MOST_REQUESTS, problem_of


def record_of(problem: object) -> Record | None:
    """A record with every column; None for a problem that no record poses.

    Lengths of requests are operands: with pages, every request is assumed to be as long as the longest, since a problem
    states no more. The number of further pages of a cache, the width of its table, the number of rotary positions and
    the scale of the scores cost no time, so they may differ from the record's.
    """
    if isinstance(problem, AttentionProblem):
        return _attention(problem)
    return _append(problem) if isinstance(problem, AppendProblem) else None


def _attention(problem: AttentionProblem) -> Record | None:
    if not problem.rows or not problem.seqlen_k or problem.page_table == "list" or problem.batch > MOST_REQUESTS:
        return None
    paged, left_right = problem.page_table == "block", problem.window or (-1, -1)
    record = {
        "direction": problem.direction,
        "batch": problem.batch,
        "seqlen_q": problem.seqlen_q,
        "seqlen_k": problem.seqlen_k,
        "nhead_q": problem.heads_q,
        "nhead_k": problem.heads_kv,
        "hdim_q": problem.hdim_q,
        "hdim_v": problem.hdim_v,
        "mask": problem.mask,
        "window_left": left_right[0],
        "window_right": left_right[1],
        "bias": problem.bias,
        "soft_cap": problem.soft_cap,
        "sink": int(problem.sink),
        "ragged": int(problem.group or (problem.kv_lengths and not paged)),
        "page_size": problem.page_size,
        "rotary_dim": 0,
        "num_splits": problem.num_splits if problem.direction == "forward" else 0,
        "lse": int(problem.lse),
        "deterministic": int(problem.deterministic),
        "dtype": problem.dtype,
    }
    alike: dict[str, Any] = {"scale": None} if problem.scale and problem.scale > 0 else {}
    return _if_like(record, problem, {**alike, **_pages(problem, ("k_strides", "v_strides"))})


def _append(problem: AppendProblem) -> Record | None:
    if not problem.batch * problem.seqlen_new or problem.rope == "interleaved" or problem.batch > MOST_REQUESTS:
        return None
    heads = problem.heads_q or problem.heads_kv
    record = {
        "direction": "append",
        "batch": problem.batch,
        "seqlen_q": problem.seqlen_new,
        "seqlen_k": problem.capacity,
        "nhead_q": heads,
        "nhead_k": problem.heads_kv,
        "hdim_q": problem.hdim_q,
        "hdim_v": problem.hdim_v,
        "mask": "none",
        "window_left": -1,
        "window_right": -1,
        "bias": "none",
        "soft_cap": 0.0,
        "page_size": problem.page_size,
        "rotary_dim": problem.rotary_dim,
        "num_splits": 0,
        **dict.fromkeys(("sink", "ragged", "lse", "deterministic"), 0),
        "dtype": problem.dtype,
    }
    alike: dict[str, Any] = {"rotary_places": problem.capacity} if problem.rope != "none" else {}
    return _if_like(record, problem, {**alike, **_pages(problem, ("k_cache_strides", "v_cache_strides"))})


def _pages(problem: AttentionProblem | AppendProblem, strides: tuple[str, ...]) -> dict[str, Any]:
    """Fields of a paged cache with only the pages that requests need; empty if pages are not dense."""
    if problem.page_table != "block" or not problem.page_size:
        return {}
    dense: dict[str, Any] = dict.fromkeys(strides)
    if dataclasses.replace(problem, **dense) != problem:
        return {}
    longest = problem.seqlen_k if isinstance(problem, AttentionProblem) else problem.capacity
    row = -(-longest // problem.page_size)
    return {**dense, "pages": problem.batch * row, "page_table_stride": row}


def _if_like(record: Record, problem: Any, alike: dict[str, Any]) -> Record | None:
    """The record, if it poses the problem apart from fields that cost no time."""
    return record if problem_of(record) == dataclasses.replace(problem, **alike) else None
