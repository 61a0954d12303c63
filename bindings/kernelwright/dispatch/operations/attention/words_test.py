"""The spec fields that problems of attention require: what is said of the nearest kernel."""

from __future__ import annotations

from typing import Any

import pytest

from kernelwright.dispatch import AppendProblem, AttentionProblem
from kernelwright.dispatch.operations.attention import words

FWD = {"op": "attention", "family": "fwd", "dtype": "bf16", "hdim_q": 128, "hdim_v": 128, "mask": "none"}
PAGES = {"page_table": "list", "pages": 4, "page_size": 16, "page_table_stride": 0}
GROUP = {"group": True, "total_q": 20, "total_k": 30}


def problem(**fields: Any) -> AttentionProblem:
    given = {"direction": "forward", "batch": 2, "heads_q": 8, "heads_kv": 2, "seqlen_q": 16, "seqlen_k": 24}
    return AttentionProblem(**{**given, "hdim_q": 128, "dtype": "bf16", **fields})


@pytest.mark.parametrize(
    ("fields", "spec", "also"),
    [
        ({}, {}, {}),
        ({"hdim_q": 80}, {}, {}),
        ({"hdim_q": 80, "hdim_v": 128}, {"pad": {"d": False, "dv": False}}, {"hdim_q": 80}),
        ({"hdim_q": 192, "hdim_v": 128}, {}, {"hdim_q": 192}),
        ({"dtype": "fp8", "dtype_o": "bf16"}, {}, {"dtype": "fp8bf16"}),
        ({"mask": "top_left"}, {}, {"mask": "top_left"}),
        ({"mask": "top_left", "window": (3, 3)}, {}, {"mask": "generic"}),
        ({"mask": "top_left"}, {"mask": "bottom_right"}, {}),
        ({"bias": "alibi"}, {}, {"bias": "alibi"}),
        ({"bias": "alibi"}, {"bias": "elementwise"}, {}),
        ({"bias": "elementwise"}, {"bias": "alibi"}, {"bias": "elementwise"}),
        (
            {"lse": True, "dropout_p": 0.5, "soft_cap": 9.0},
            {},
            dict.fromkeys(("lse", "dropout", "logits_soft_cap"), True),
        ),
        ({"lse": True}, {"family": "fwd_splitkv"}, {}),
        ({"sink": True, **PAGES}, {}, {"sink": True, "paged_kv": True}),
        (PAGES, {"family": "batch_prefill"}, {}),
        (GROUP, {}, {"group": True}),
        (GROUP, {"family": "batch_prefill"}, {}),
        ({"direction": "backward", "soft_cap": 9.0}, {"family": "bwd_dq_dk_dv"}, {}),
    ],
)
def test_what_a_kernel_must_have(fields: dict[str, Any], spec: dict[str, Any], also: dict[str, Any]) -> None:
    asked = words.asked(problem(**fields), {**FWD, **spec})
    assert asked == {"op": "attention", "dtype": "bf16", **also}


def test_kernels_of_rows_need_little() -> None:
    spec = {**FWD, "family": "fwd_splitkv_combine", "hdim_v": 64}
    asked = words.asked(problem(mask="top_left", lse=True, bias="alibi"), spec)
    assert asked == {"op": "attention", "hdim_v": 128, "lse": True}


def test_what_a_kernel_that_appends_must_have() -> None:
    spec = {"op": "attention", "family": "fwd_appendkv", "dtype": "fp16", "hdim_q": 64, "hdim_v": 64}
    given = AppendProblem(2, 2, 3, 64, 100, rope="half", rotary_dim=32, rotary_places=100)
    asked = words.asked_of_append(given, spec)
    assert asked == {"op": "attention", "family": "fwd_appendkv", "dtype": "fp16", "rope": "half"}
