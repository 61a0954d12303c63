from __future__ import annotations

import pytest

from kernelwright.tile_engine.problems.attention import attention_problems
from kernelwright.tile_engine.problems.models import HELD_OUT, PARTS, TUNING
from kernelwright.tile_engine.problems.registry import KEYS, problems
from kernelwright.tile_engine.registry import measurable

ATTENTION = measurable("attention")
HEADS = ("nhead_q", "nhead_k", "hdim_q", "hdim_v", "bias", "soft_cap", "sink", "window_left")


@pytest.mark.parametrize("key", [key for key in KEYS if key.startswith("attention") and key.endswith("bf16")])
def test_every_key_holds_legal_problems(key: str) -> None:
    records = problems(ATTENTION, key)
    assert len(records) > 20 and all(one["dtype"] == "bf16" for one in records)
    uses = {
        "backward": {"backward"},
        "append": {"append"},
        "edges": {"forward", "backward", "append"},
        "validation": {"forward", "backward"},
        "all": {"forward", "backward"},
        "between": {"forward", "backward"},
    }
    assert {one["direction"] for one in records} == uses.get(key.split("-")[-2], {"forward"})


def test_three_hundred_problems_are_held_out() -> None:
    keys = [key for key in KEYS if key.startswith("attention-held-out") and key.endswith("bf16")]
    assert sum(len(problems(ATTENTION, key)) for key in keys) >= 300
    frozen = {tuple(one.items()) for one in problems(ATTENTION, "attention-validation-bf16")}
    asked = {tuple(one.items()) for key in keys if not key.endswith("append-bf16") for one in problems(ATTENTION, key)}
    assert asked <= frozen and len(frozen) > 600


def test_no_held_out_layer_is_a_tuning_layer() -> None:
    causal = {
        part: {
            tuple(one.get(name, -1) for name in HEADS) for one in attention_problems(part, "prefill") if "mask" in one
        }
        for part in PARTS
    }
    assert causal[TUNING] and causal[HELD_OUT] and not causal[TUNING] & causal[HELD_OUT]
    with pytest.raises(ValueError, match="no part of the models"):
        list(attention_problems("all", "decode"))


def test_lengths_between_are_of_tuning_layers_and_posed_once() -> None:
    between = {tuple(one.items()) for one in problems(ATTENTION, "attention-tuning-between-bf16")}
    others = (problems(ATTENTION, f"attention-{name}-bf16") for name in ("tuning-all", "validation"))
    assert len(between) > 500 and not between & {tuple(one.items()) for each in others for one in each}


def test_features_of_models_are_posed() -> None:
    records = [one for part in PARTS for key in ("prefill", "decode") for one in attention_problems(part, key)]
    for name in ("soft_cap", "sink", "page_size", "ragged"):
        assert any(one.get(name) for one in records), name
    assert {one["bias"] for one in records} == {"none", "alibi", "elementwise"}
    assert {one.get("window_left", -1) for one in records} == {-1, 128, 2047, 4096}
    assert any(one["hdim_q"] == 192 and one["hdim_v"] == 128 for one in records)  # latent attention
    assert any(one["seqlen_q"] % 8 for one in records) and any(one["seqlen_k"] > one["seqlen_q"] > 1 for one in records)
