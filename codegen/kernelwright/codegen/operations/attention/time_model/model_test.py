from __future__ import annotations

import math
from typing import Any

import pytest

from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention.rules.hip import ALIBI_POSITIONS
from kernelwright.codegen.operations.attention.spec import attention_spec
from kernelwright.codegen.operations.attention.time_model.model import APPEND, AttentionTimeModel, split_choices
from kernelwright.codegen.operations.attention.time_model.problem import Stage
from kernelwright.codegen.operations.attention.time_model.traits import described
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.violations import SpecError

MODEL = AttentionTimeModel()
ARCHS = ("sm_90a", "gfx942", "x86_64_v4")
FORWARD: dict[str, Any] = {"direction": "forward", "batch": 2, "heads_q": 8, "heads_kv": 2, "seqlen_q": 512}
FORWARD |= {"seqlen_k": 512, "hdim_q": 128, "dtype": "bf16"}
NEW: dict[str, Any] = {"batch": 2, "heads_kv": 2, "seqlen_new": 1, "hdim_q": 128, "capacity": 512, "dtype": "bf16"}


def kernel(arch: str, family: str) -> Kernel:
    kernels = expand_set("attention:essential", load(arch)).kernels
    of_family = [attention_spec(one) for one in kernels if attention_spec(one).family == family]
    spec = next(one for one in of_family if one.dtype == "bf16" and one.hdim_q >= 128)
    return Kernel(arch=arch, spec=spec)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("family", ["fwd", "bwd_dq_dk_dv"])
def test_more_keys_never_take_less_time(arch: str, family: str) -> None:
    direction = "forward" if family == "fwd" else "backward"
    us = [
        MODEL.candidates(
            kernel(arch, family), MODEL.read({**FORWARD, "direction": direction, "seqlen_k": k}), load(arch)
        )
        for k in (128, 1024, 8192)
    ]
    (few,), (more,), (most,) = us
    assert 0 < few.microseconds <= more.microseconds <= most.microseconds


@pytest.mark.parametrize(
    ("fields", "served"),
    [
        ({}, True),
        ({"dtype": "fp16"}, False),
        ({"hdim_q": 64, "hdim_v": 128}, True),
        ({"hdim_q": 80, "hdim_v": 80}, True),
        ({"hdim_q": 100, "hdim_v": 100}, False),
        ({"hdim_q": 136, "hdim_v": 128}, False),
        ({"lse": True}, True),
        ({"mask": "top_left"}, True),
        ({"bias": "elementwise"}, False),
        ({"soft_cap": 30.0}, False),
        ({"dropout_p": 0.1}, False),
        ({"num_splits": 2}, False),
        ({"group": True, "total_q": 700, "total_k": 700}, True),
        ({"page_table": "block", "pages": 16, "page_size": 64, "page_table_stride": 8, "kv_lengths": True}, False),
        ({"k_strides": [131072, 128, 257]}, False),  # rows of 514 bytes
        ({"scale": -1.0}, False),
    ],
)
def test_what_a_kernel_of_nvidia_serves(fields: dict[str, Any], served: bool) -> None:
    problem = MODEL.read({**FORWARD, **fields})
    assert bool(MODEL.candidates(kernel("sm_90a", "fwd"), problem, load("sm_90a"))) is served


@pytest.mark.parametrize(
    ("family", "lengths", "served"),
    [
        ("fwd", {"seqlen_k": ALIBI_POSITIONS}, True),
        ("fwd", {"seqlen_k": ALIBI_POSITIONS + 1}, False),
        ("fwd", {"seqlen_q": ALIBI_POSITIONS + 1}, False),
        ("fwd_splitkv", {"seqlen_q": 1, "seqlen_k": 2**18}, True),
        ("bwd_dq_dk_dv", {"seqlen_k": ALIBI_POSITIONS + 1}, False),
    ],
)
def test_alibi_on_amd_counts_16_bits(family: str, lengths: dict[str, int], served: bool) -> None:
    arch, fields = load("gfx942"), {"op": "attention", "family": family, "dtype": "bf16", "hdim": 128, "bias": "alibi"}
    direction = "backward" if family.startswith("bwd") else "forward"
    problem = MODEL.read({**FORWARD, **lengths, "bias": "alibi", "direction": direction})
    assert bool(MODEL.candidates(parse_kernel(fields, arch), problem, arch)) is served


def test_splits_are_left_to_a_combination() -> None:
    problem = MODEL.read({**FORWARD, "seqlen_q": 1, "seqlen_k": 65536})
    split = kernel("sm_90a", "fwd_splitkv")
    whole, parts = sorted(
        MODEL.candidates(split, problem, load("sm_90a")), key=lambda candidate: len(candidate.further)
    )
    assert not whole.further and parts.microseconds < whole.microseconds
    (combine,) = parts.further
    assert combine.stage is Stage.COMBINE and combine.num_splits > 1
    assert MODEL.candidates(kernel("sm_90a", "fwd_splitkv_combine"), combine, load("sm_90a"))
    assert not MODEL.candidates(split, combine, load("sm_90a"))
    arch = load("sm_90a")
    description = described(attention_spec(split), arch)
    assert split_choices(description, MODEL.read({**FORWARD, "seqlen_q": 1, "num_splits": 5}), arch, 132) == [5]  # type: ignore[arg-type]
    assert split_choices(description, MODEL.read({**FORWARD, "num_splits": 5000}), arch, 132) == []  # type: ignore[arg-type]


@pytest.mark.parametrize("arch", ARCHS)
def test_gradients_need_d_and_where_sums_are_left_a_conversion(arch: str) -> None:
    problem = MODEL.read({**FORWARD, "direction": "backward"})
    (candidate,) = MODEL.candidates(kernel(arch, "bwd_dq_dk_dv"), problem, load(arch))
    assert [one.stage for one in candidate.further] == [Stage.DOT, *([Stage.CONVERT_DQ] if arch != "sm_90a" else [])]
    helpers = ("bwd_dot_do_o", "bwd_convert_dq")
    for stage, family in zip(candidate.further, helpers, strict=False):
        assert MODEL.candidates(kernel(arch, family), stage, load(arch))


@pytest.mark.parametrize("arch", ARCHS)
def test_appends_are_served_by_kernels_of_their_rotation(arch: str) -> None:
    rotary = {"rope": "half", "rotary_dim": 128, "rotary_places": 512, "heads_q": 8, "seqlen_q": 1}
    kernels = [one for one in expand_set("attention:ck_default", load(arch)).kernels if "append" in one.name]
    for fields in ({}, rotary, {**rotary, "rope": "interleaved"}):
        served = [
            attention_spec(one)
            for one in kernels
            if MODEL.candidates(one, MODEL.read({**NEW, **fields}, APPEND), load(arch))
        ]
        assert served and {str(one.dtype) for one in served} == {"bf16"}
        assert all(one.rope == fields.get("rope", "none") for one in served) or arch in ("x86_64_v4", "sm_90a")


def test_problems_that_mean_the_same_have_one_key() -> None:
    stated = {"hdim_v": 128, "dtype_kv": "bf16", "scale": 1 / math.sqrt(128), "q_strides": [512 * 1024, 128, 1024]}
    assert MODEL.key(MODEL.read(FORWARD)) == MODEL.key(MODEL.read({**FORWARD, **stated, "num_splits": 3}))
    causal = {"mask": "bottom_right"}
    every = MODEL.read({**FORWARD, **causal, "window": [-1, -1]})
    assert MODEL.key(MODEL.read({**FORWARD, **causal})) != MODEL.key(every)
    row = {"direction": "forward", "batch": "2", "seqlen_q": "512", "seqlen_k": "512", "nhead_q": "8", "nhead_k": "2"}
    row |= {
        "hdim_q": "128",
        "hdim_v": "128",
        "mask": "none",
        "window_left": "-1",
        "window_right": "-1",
        "dtype": "bf16",
    }
    row |= {"bias": "none", "soft_cap": "0.0"}
    row |= dict.fromkeys(("sink", "ragged", "page_size", "rotary_dim", "num_splits", "lse", "deterministic"), "0")
    assert MODEL.key(MODEL.measured(row)) == MODEL.key(MODEL.read(FORWARD))  # type: ignore[arg-type]
    appended = MODEL.measured({**row, "direction": "append", "seqlen_q": "1"})
    assert MODEL.key(appended) == MODEL.key(MODEL.read(NEW, APPEND))  # type: ignore[arg-type]
    grouped = MODEL.measured({**row, "ragged": "1"})
    assert grouped.whole.total_q == 512 + 384  # type: ignore[union-attr]
    assert MODEL.measured({"m": "1"}) is None


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"tile": 3}, "a problem of attention has unknown fields tile"),
        ({"batch": "2"}, "batch is '2'; allowed: an integer"),
        ({"heads_kv": 3}, "heads_q is 8; allowed: a multiple of heads_kv = 3"),
        ({"mask": "causal"}, "mask is 'causal'; allowed: none, top_left, bottom_right"),
        ({"mask": "top_left", "window": [1]}, "window is"),
        ({"dtype": "int4"}, "dtype is 'int4'"),
        ({"q_strides": [1]}, "allowed: three strides, of requests, heads and rows"),
    ],
)
def test_wrong_problems_say_why(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        MODEL.read({**FORWARD, **fields})
    with pytest.raises(SpecError, match="a problem of attention lacks batch"):
        MODEL.read({"direction": "forward"})
    with pytest.raises(SpecError, match="a problem of appending keys lacks batch"):
        MODEL.read({}, APPEND)
    with pytest.raises(SpecError, match="rope is 'spin'; allowed: none, interleaved, half"):
        MODEL.read({**NEW, "rope": "spin"}, APPEND)
