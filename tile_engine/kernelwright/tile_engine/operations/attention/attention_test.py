from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.tile_engine.operations.attention import operands as operands_module
from kernelwright.tile_engine.operations.attention.exact import Head, Result, forward, gradients, weights
from kernelwright.tile_engine.operations.attention.operands import AttentionOperands
from kernelwright.tile_engine.registry import measurable

ATTENTION = measurable("attention")
SMALL = {"seqlen_q": 5, "seqlen_k": 9, "nhead_q": 4, "nhead_k": 2, "hdim_q": 8, "dtype": "fp32"}


def record(**fields: Any) -> Any:
    return ATTENTION.read({**SMALL, **fields})


def direct(p: Any, head: Head) -> tuple[Any, Any]:
    """O and LSE, query by query and key by key."""
    out, lse = np.zeros((len(head.q), head.v.shape[1])), np.full(len(head.q), -np.inf)
    for i, at in enumerate(head.query_places):
        total, terms = 0.0 if head.sink is None else math.exp(head.sink), []
        for j, key in enumerate(head.key_places):
            left, right = p["window_left"], p["window_right"]
            if p["mask"] != "none" and ((left >= 0 and key < at - left) or (right >= 0 and key > at + right)):
                continue
            score = float(head.q[i] @ head.k[j]) / math.sqrt(p["hdim_q"])
            if p["soft_cap"]:
                score = p["soft_cap"] * math.tanh(score / p["soft_cap"])
            score -= head.slope * abs(at - key)
            terms.append((math.exp(score), head.v[j]))
        total += sum(weight for weight, _ in terms)
        if total:
            out[i], lse[i] = sum(weight * v for weight, v in terms) / total if terms else 0, math.log(total)
    return out, lse


@settings(deadline=None)  # other builds share the machine
@given(st.data())
def test_exact_results_are_those_of_the_definition(data: st.DataObject) -> None:
    mask = data.draw(st.sampled_from(["none", "top_left", "bottom_right"]))
    window = {} if mask == "none" else {"window_left": data.draw(st.integers(-1, 3))}
    cap, slope = data.draw(st.sampled_from([0.0, 2.0])), data.draw(st.sampled_from([0.0, 0.3]))
    p = record(mask=mask, soft_cap=cap, **window)
    draw = np.random.default_rng(data.draw(st.integers(0, 99)))
    q, k, v = (draw.standard_normal(shape) for shape in ((5, 8), (9, 8), (9, 3)))
    shift = 4 if mask == "bottom_right" else 0
    sink = data.draw(st.sampled_from([None, 0.5]))
    head = Head(q, k, v, np.arange(5) + shift, np.arange(9), slope=slope, sink=sink)
    o, lse = forward(p, head)
    wanted, wanted_lse = direct(p, head)
    np.testing.assert_allclose(o.exact, wanted, atol=1e-12)
    np.testing.assert_allclose(lse.exact, wanted_lse, atol=1e-12)
    assert (o.bound > 0).all() == np.isfinite(wanted_lse).all()


def test_exact_gradients_are_those_of_the_exact_forward_pass() -> None:
    p = record(mask="bottom_right", soft_cap=2.0)
    draw = np.random.default_rng(0)
    q, k, v, do = (draw.standard_normal(shape) for shape in ((5, 8), (9, 8), (9, 3), (5, 3)))
    places = np.arange(5) + 4, np.arange(9)

    def loss(q: Any, k: Any, v: Any) -> float:
        return float((forward(p, Head(q, k, v, *places))[0].exact * do).sum())

    head = Head(q, k, v, *places)
    o, lse = (one.exact for one in forward(p, head))
    by_name = gradients(p, head, do, weights(p, head, do, o, lse))
    for place, (name, array) in enumerate((("dq", q), ("dk", k), ("dv", v))):
        step = draw.standard_normal(array.shape)
        moved = [[q, k, v] for _ in range(2)]
        moved[0][place], moved[1][place] = array + 1e-5 * step, array - 1e-5 * step
        slope = (loss(*moved[0]) - loss(*moved[1])) / 2e-5
        assert float((by_name[name].exact * step).sum()) == pytest.approx(slope, rel=1e-7), name


def solved(made: AttentionOperands) -> None:
    """Write exact results, rounded to their types."""
    compared = made._compared
    for result, (name, request, head, rows) in list(compared.expected()):
        held = compared._lse(request, head) if name == "lse" else compared._of(name, request, head)
        held[rows] = result.exact


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize(
    "fields",
    [
        {"batch": 3, "ragged": 1},
        {"batch": 2, "page_size": 4, "mask": "bottom_right"},
        {"batch": 3, "seqlen_q": 1, "ragged": 1, "page_size": 4},
        {"sink": 1, "bias": "alibi"},
        {"bias": "elementwise", "dtype": "bf16"},
    ],
)
def test_right_results_pass_and_others_do_not(
    fields: dict[str, Any], large: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if large:  # checked in part, which here is all
        monkeypatch.setattr(operands_module, "_ALL_CHECKED", 0)
        monkeypatch.setattr(operands_module, "_HEADS", 100)
    made = ATTENTION.operands(record(lse=1, **fields), seed=3)
    assert isinstance(made, AttentionOperands) and made.error() == np.inf
    monkeypatch.setattr(operands_module, "_ALL_CHECKED", 1 << 28)
    solved(made)
    assert made.error() <= 1
    o = made._compared._of("o", 0, 3)
    o[0, 2] += o.dtype.type(0.125)
    assert made.error() > 1
    o[0, 2] = np.nan
    assert made.error() == np.inf


def test_bounds_hold_for_each_element() -> None:
    result = Result(np.array([1.0, -np.inf, 0.0]), np.array([0.1, 0.0, 0.0]))
    assert result.share(np.array([1.05, -np.inf, 0.0])) == pytest.approx(0.5)
    assert result.share(np.array([1.0, 0.0, 0.0])) == np.inf
    assert result.share(np.array([1.0, -np.inf, 1e-3])) > 1


@pytest.mark.parametrize("page_size", [0, 4])
def test_appended_rows_are_compared_and_old_ones_must_stay(page_size: int) -> None:
    p = record(direction="append", batch=2, seqlen_q=3, rotary_dim=8, page_size=page_size, ragged=1)
    made: Any = ATTENTION.operands(p, seed=1)
    assert made.error() == np.inf
    pages, rows = made._places()
    k, v = made._turned(made.named["k"]).exact, made.named["v"]
    made.named["k_cache"][pages, rows], made.named["v_cache"][pages, rows] = k, v
    made.named["q_out"][...] = made._turned(made.named["q"]).exact
    assert made.error() <= 1
    kept = made.named["k_cache"].copy()
    made.named["k_cache"][...] += np.float32(1)
    assert made.error() == np.inf  # an old row has changed
    made.named["k_cache"][...] = kept
    made.named["v_cache"][pages[1, 2], rows[1, 2], 0, 0] += np.float32(1e-3)
    assert made.error() > 1


def test_work_counts_what_queries_see() -> None:
    causal = record(mask="bottom_right")
    assert ATTENTION.flops(causal) == 2 * 4 * (5 + 6 + 7 + 8 + 9) * 16
    assert ATTENTION.bytes_moved(causal) == 4 * (5 * 4 * 16 + 9 * 2 * 16)
    assert ATTENTION.flops({**causal, "direction": "backward"}) == 2 * 4 * 35 * 40
    ragged = record(batch=2, ragged=1)
    assert ATTENTION.flops(ragged) == 2 * 4 * (5 * 9 + 4 * 7) * 16


def test_kernels_beside_the_one_that_computes_are_known() -> None:
    assert ATTENTION.auxiliary({"family": "bwd_dot_do_o"}) and not ATTENTION.auxiliary({"family": "bwd_dq_dk_dv"})


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"m": 3}, r"unknown keys \['m'\]"),
        ({"direction": "decode"}, "direction is 'decode'; allowed: forward, backward, append"),
        ({"mask": "causal"}, "mask is 'causal'; allowed: none, top_left, bottom_right"),
        ({"nhead_k": 3}, "multiple of heads_kv = 3"),
        ({"sink": 2}, "sink is 2; allowed: 0, 1"),
        ({"direction": "backward", "page_size": 4}, "page_size is 4; allowed for backward: 0"),
        ({"direction": "append", "soft_cap": 2.0}, "soft_cap is 2.0; allowed for append: 0.0"),
        ({"direction": "append", "seqlen_q": 10}, "rows that stand among seqlen_k"),
        ({"bias": "elementwise", "ragged": 1}, "allowed: ragged 0"),
        ({"batch": 2**63}, "batch is 9223372036854775808; allowed: whole numbers up to 65536"),  # lengths are listed
        ({"batch": "x"}, "batch is 'x'; allowed: whole numbers"),
    ],
)
def test_an_illegal_record_says_what_is_wrong(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        record(**fields)
    with pytest.raises(ValueError, match="lacks seqlen_q, nhead_q, hdim_q"):
        ATTENTION.read({})
