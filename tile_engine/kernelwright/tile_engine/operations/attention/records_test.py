from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from kernelwright.dispatch import AppendProblem, AttentionProblem
from kernelwright.tile_engine.registry import measurable

ATTENTION = measurable("attention")
HEADS: dict[str, Any] = {"batch": 2, "seqlen_q": 64, "seqlen_k": 256, "nhead_q": 8, "nhead_k": 2, "hdim_q": 64}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mask": "bottom_right", "window_left": 31, "soft_cap": 20.0, "lse": 1},
        {"bias": "elementwise"},
        {"bias": "alibi"},
        {"ragged": 1},
        {"seqlen_q": 1, "ragged": 1, "sink": 1},
        {"seqlen_q": 1, "page_size": 16, "num_splits": 3},
        {"seqlen_q": 1, "page_size": 48},
        {"direction": "backward", "mask": "top_left", "deterministic": 1},
        {"direction": "append", "seqlen_q": 3},
        {"direction": "append", "seqlen_q": 3, "rotary_dim": 32, "page_size": 64},
    ],
)
def test_a_record_is_found_again_from_its_problem(fields: dict[str, Any]) -> None:
    record = ATTENTION.read({**HEADS, **fields})
    restored = ATTENTION.record_of(ATTENTION.problem(record))
    assert restored is not None and ATTENTION.problem(restored) == ATTENTION.problem(record)
    if record["direction"] != "append" or record["rotary_dim"]:
        assert restored == record  # without rotation, an append has no heads of Q


def test_what_costs_no_time_may_differ() -> None:
    record = ATTENTION.read({**HEADS, "seqlen_q": 1, "page_size": 16})
    problem = ATTENTION.problem(record)
    wider = dataclasses.replace(problem, pages=5000, page_table_stride=100, scale=0.5, k_strides=None, v_strides=None)
    assert ATTENTION.record_of(wider) == record
    turned = ATTENTION.read({**HEADS, "direction": "append", "seqlen_q": 3, "rotary_dim": 32})
    assert ATTENTION.record_of(dataclasses.replace(ATTENTION.problem(turned), rotary_places=9999)) == turned


@pytest.mark.parametrize(
    "problem",
    [
        AttentionProblem("forward", 2, 8, 2, 64, 256, 64, dropout_p=0.1),
        AttentionProblem("forward", 2, 8, 2, 64, 256, 64, layout="bhsd"),
        AttentionProblem("forward", 2, 8, 2, 64, 256, 64, kv_lengths=True),
        AttentionProblem("forward", 2, 8, 2, 64, 256, 64, group=True, total_q=70, total_k=300),
        AttentionProblem("forward", 0, 8, 2, 64, 256, 64),
        AttentionProblem("forward", 2**40, 8, 2, 64, 256, 64),
        AppendProblem(2, 2, 1, 64, 128, rope="interleaved", rotary_dim=64, rotary_places=128),
        object(),
    ],
)
def test_other_problems_have_no_record(problem: Any) -> None:
    assert ATTENTION.record_of(problem) is None


def test_values_are_splits_where_they_are_open() -> None:
    opened = AttentionProblem("forward", 2, 8, 2, 1, 4096, 64)
    assert ATTENTION.with_value(opened, 5).num_splits == 5
    for problem in (dataclasses.replace(opened, num_splits=2), AppendProblem(2, 2, 1, 64, 128)):
        assert ATTENTION.with_value(problem, 5) == problem
