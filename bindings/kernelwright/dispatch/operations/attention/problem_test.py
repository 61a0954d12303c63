"""Attention problems: what follows from their fields, what is refused, and the C structs."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.dispatch import AppendProblem, AttentionProblem, ProblemError
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="module", autouse=True)
def _native() -> None:
    mocks.native_library()


def problem(**fields: Any) -> AttentionProblem:
    given: dict[str, Any] = {
        "direction": "forward", "batch": 2, "heads_q": 8, "heads_kv": 2, "seqlen_q": 16, "seqlen_k": 24, "hdim_q": 64
    }  # fmt: skip
    return AttentionProblem(**{**given, **fields})


def append(**fields: Any) -> AppendProblem:
    given: dict[str, Any] = {"batch": 2, "heads_kv": 2, "seqlen_new": 3, "hdim_q": 64, "capacity": 100}
    return AppendProblem(**{**given, **fields})


def test_defaults_follow() -> None:
    p = problem(hdim_v=32, mask="top_left")
    assert (p.scale, p.window, p.num_splits, p.dtype_o) == (0.125, (-1, 0), 0, "fp16")
    assert p.q_strides == (16 * 512, 64, 512) and p.v_strides == (24 * 64, 32, 64)
    assert problem(layout="bhsd").k_strides == (2 * 24 * 64, 24 * 64, 64)
    assert p.lse_shape == (2, 8, 16) and p.rows == 256 and p.span("v") == 2 * 2 * 24 * 2 * 32
    assert problem(dtype="fp8").dtype_o == "fp16" and problem(direction="backward").num_splits == 1
    grouped = problem(group=True, total_q=20, total_k=30)
    assert grouped.lse_shape == (8, 20) and grouped.q_strides == (0, 64, 512)


def test_flops_count_what_is_seen() -> None:
    assert problem().flops == 2 * 2 * 8 * 16 * 24 * 128
    assert problem(seqlen_k=16, mask="top_left").flops == 2 * 2 * 8 * (16 * 17 // 2) * 128
    assert problem(mask="bottom_right", window=(3, 0)).flops == 2 * 2 * 8 * 16 * 4 * 128
    assert problem(direction="backward").flops == 2 * 2 * 8 * 16 * 24 * 5 * 64
    assert append(rope="half", rotary_dim=32, rotary_places=9).flops == 3 * 2 * 2 * 3 * 32


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"mask": "causal"}, r"mask is 'causal'; allowed: none, top_left, bottom_right"),
        ({"window": (3, 0)}, r"without a mask; allowed: mask top_left"),
        ({"heads_kv": 3}, r"heads_q is 8; allowed: a multiple of heads_kv = 3"),
        ({"dtype": "fp64"}, r"dtype is 'fp64'"),
        ({"dtype_bias": "fp16"}, r"allowed without an elementwise bias: none"),
        ({"dropout_p": 1.0}, r"dropout_p = 1; allowed: from 0 to below 1"),
        ({"group": True}, r"total_q = 0; allowed: from the longest request, 16"),
        ({"page_table": "block"}, r"kv_lengths = 0; allowed with a block table: 1"),
        ({"q_strides": (1, 2)}, r"q_strides is \(1, 2\); allowed: three strides"),
        ({"o_strides": (8192, 0, 512)}, r"strides of O let results overlap"),
        ({"dq_strides": (1, 1, 1)}, r"this problem has no such tensor"),
        ({"layout": "sbhd"}, r"layout is 'sbhd' \(did you mean 'bshd'\?\); allowed: bshd, bhsd"),
        ({"direction": "backward", "lse": True}, r"allowed backward"),
        ({"direction": "backward", "dbias": True}, r"dbias = 1; allowed: with an elementwise bias"),
        ({"batch": -1}, r"batch is -1; allowed: 0 or more"),
        ({"batch": 2.5}, r"batch is 2.5; allowed: an integer"),
    ],
)
def test_illegal_problems_are_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ProblemError, match=message):
        problem(**fields)


def test_illegal_appends_are_refused() -> None:
    for fields, message in (
        ({"rope": "half", "rotary_dim": 66}, r"rotary_dim = 66; allowed: an even number from 2 to hdim_q = 64"),
        ({"heads_q": 4}, r"rotates_q = 1; allowed: 0 to 0"),
        ({"capacity": 2}, r"capacity = 2; allowed: 3"),
        ({"page_table": "list"}, r"page_table is 'list'; allowed: none, block"),
    ):
        with pytest.raises(ProblemError, match=message):
            append(**fields)


_FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "batch": st.integers(0, 5), "hdim_v": st.sampled_from([8, 64, 128]), "seqlen_q": st.integers(0, 99),
        "seqlen_k": st.integers(0, 99), "mask": st.sampled_from(["none", "top_left", "bottom_right"]),
        "soft_cap": st.floats(0, 50), "scale": st.floats(-2, 2), "dropout_p": st.floats(0, 0.9), "lse": st.booleans(),
        "sink": st.booleans(), "bias": st.sampled_from(["none", "elementwise", "alibi"]),
        "num_splits": st.integers(0, 9),
        "dtype": st.sampled_from(["fp32", "fp16", "bf16", "fp8"]), "kv_lengths": st.booleans(),
        "layout": st.sampled_from(["bshd", "bhsd"]), "qscale": st.sampled_from(["none", "per_tensor"]),
    },
)  # fmt: skip


@settings(deadline=None)
@given(_FIELDS)
def test_structs_are_read_back(fields: dict[str, Any]) -> None:
    made = problem(**fields)
    struct = made.native()
    again = AttentionProblem.from_native(ctypes.addressof(struct))
    assert again == made and hash(again) == hash(made) and str(again) == str(made)


def test_structs_of_pages_and_appends_are_read_back() -> None:
    pages = {"page_table": "block", "pages": 7, "page_size": 16, "page_table_stride": 2}
    for made in (
        problem(**pages, kv_lengths=True),
        problem(**pages, kv_lengths=True, page_layout="vectorized"),
        problem(direction="backward", bias="elementwise", dbias=True, deterministic=True, mask="top_left"),
        append(rope="interleaved", rotary_dim=8, rotary_places=5, heads_q=4, seqlen_q=1, dtype_rotary="fp32"),
        append(**{**pages, "capacity": 32}),
    ):
        struct = made.native()
        assert type(made).from_native(ctypes.addressof(struct)) == made
