"""The backward pass in the simulator against float64: GQA, masks, biases, dropout, ragged lengths, a fixed order."""

from __future__ import annotations

import os
from typing import Any

import pytest

from attention.amd.backward import Errors, Kernels, Problem, errors
from attention.amd.compiled import compiled
from attention.amd.memory import TOLERANCE
from attention.masks import BOTTOM_RIGHT, TOP_LEFT, Window


def kernels(arch: str, fields: dict[str, Any]) -> Kernels:
    same = {name: fields[name] for name in ("dtype", "hdim", "group") if name in fields}
    order = {"deterministic": True} if fields.get("deterministic") else {}
    return Kernels(
        compiled(arch, {"family": "bwd_dot_do_o", **same}),
        compiled(arch, {"family": "bwd_dq_dk_dv", **fields}),
        compiled(arch, {"family": "bwd_convert_dq", **same, **order}),
    )


def check(arch: str, fields: dict[str, Any], problem: Problem) -> Errors:
    made = kernels(arch, fields)
    error = errors(made, problem)
    assert made.dot.report["vgpr_spills"] == made.convert.report["vgpr_spills"] == 0
    assert max(error.dq, error.dk, error.dv, error.dbias) < TOLERANCE[fields["dtype"]]
    assert error.d < TOLERANCE[fields["dtype"]]
    return error


BF16: dict[str, Any] = {"dtype": "bf16", "hdim": 64}
CAUSAL: dict[str, Any] = {**BF16, "mask": "generic", "deterministic": True}
GQA = Problem((40, 40), (150, 150), heads=4, kv_heads=2, window=BOTTOM_RIGHT)


@pytest.mark.thorough(instead="tests/attention/amd/neighbours_test.py")
def test_causal_gradients_in_a_fixed_order() -> None:
    check("gfx942", CAUSAL, GQA)
    check("gfx942", CAUSAL, Problem((140,), (50,), window=BOTTOM_RIGHT))  # most queries see nothing


DROPOUT: dict[str, Any] = {**BF16, "dropout": True, "store_randval": True}
WHOLE: dict[str, Any] = {"pad": [True, True, False, False], "hdim_q_alignment": 0, "hdim_v_alignment": 0}
TRLOAD: dict[str, Any] = {"dtype": "bf16", "trload": True, "hdim_q_alignment": 8, "hdim_v_alignment": 8}
EVERY: tuple[tuple[str, dict[str, Any], Problem], ...] = (
    ("gfx942", BF16, Problem((70,), (130,))),
    ("gfx942", {**BF16, **WHOLE, "mask": "generic"}, Problem((70,), (130,), window=TOP_LEFT)),
    (
        "gfx942",
        {**CAUSAL, "group": True, "bias": "alibi"},
        Problem((40, 0, 33), (150, 20, 70), window=Window(20, 5, True)),
    ),
    ("gfx942", {**DROPOUT, "bias": "elementwise", "dbias": True}, Problem((40,), (150,), keep=0.8)),
    # Whole tiles that no query sees: the gradients of their biases are zeros.
    ("gfx942", {**CAUSAL, "bias": "elementwise", "dbias": True}, Problem((140,), (300,), window=TOP_LEFT)),
    (
        "gfx942",
        {**BF16, "group": True, "bias": "elementwise", "dbias": True},
        Problem((40, 0, 33), (150, 20, 270)),
    ),
    ("gfx942", {**BF16, "dtype": "fp16", "hdim": 128}, Problem((30,), (140,), heads=4)),
    ("gfx942", {"dtype": "fp32", "hdim": 32}, Problem((40,), (70,))),
    ("gfx90a", CAUSAL, GQA),
    ("gfx950", CAUSAL, GQA),
    ("gfx1201", CAUSAL, GQA),
    ("gfx1201", {"dtype": "bf16", "hdim": 128, "mask": "generic"}, Problem((20,), (70,), window=TOP_LEFT)),
    (
        "gfx950",
        {**TRLOAD, **CAUSAL, "max_seq_len_q": 0, "bwd_tile": [32, 128, 64, 32, 64, 32, 32, 64, 64]},
        GQA,
    ),
    ("gfx950", {**TRLOAD, "hdim": 128, "max_seq_len_q": 0}, Problem((40,), (200,))),
    ("gfx950", {**TRLOAD, "hdim": 128, "max_seq_len_q": 16}, Problem((13,), (200,), heads=4, kv_heads=2)),
)


@pytest.mark.skipif(not os.environ.get("KERNELWRIGHT_EVERY"), reason="opt-in: 20 to 30 processor seconds each")
@pytest.mark.parametrize(("arch", "fields", "problem"), EVERY)
def test_every_gradient(arch: str, fields: dict[str, Any], problem: Problem) -> None:
    check(arch, fields, problem)


@pytest.mark.skipif(not os.environ.get("KERNELWRIGHT_EVERY"), reason="opt-in: the same kernels twice")
def test_a_fixed_order_gives_the_same_bits() -> None:
    first, second = (errors(kernels("gfx942", CAUSAL), GQA).bits for _ in range(2))
    assert first == second
