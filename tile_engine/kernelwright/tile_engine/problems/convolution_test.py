from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.problems.convolution import BATCHES, conv_problems
from kernelwright.tile_engine.problems.models import PARTS
from kernelwright.tile_engine.problems.networks import networks, read_network
from kernelwright.tile_engine.problems.registry import KEYS, problems
from kernelwright.tile_engine.registry import measurable

CONV = measurable("convolution")


def test_a_family_has_one_part_and_there_are_enough_held_out_problems() -> None:
    parts: dict[str, set[str]] = {}
    for network in networks():
        parts.setdefault(network.family, set()).add(network.part)
    assert all(len(own_parts) == 1 for own_parts in parts.values())
    assert len(conv_problems("held-out", 2)) >= 250 and len(conv_problems("held-out", 3)) >= 50
    with pytest.raises(ValueError, match="no part of the networks"):
        conv_problems("validation", 2)


@pytest.mark.parametrize("dims", [2, 3])
def test_no_held_out_layer_is_a_tuning_layer(dims: int) -> None:
    tuning, held_out = ({one.layer for one in conv_problems(part, dims)} for part in PARTS)
    assert not tuning & held_out
    for part in PARTS:
        problems = conv_problems(part, dims)
        assert len({(one.layer, one.images) for one in problems}) == len(problems)
        assert {one.images for one in problems} <= {count for kind in BATCHES for count in kind}


def test_validation_holds_every_direction_in_both_numbers_of_dimensions() -> None:
    records = problems(CONV, "conv-validation-fp32")
    deep = [one for one in records if one["di"] > 1]
    assert (len(records), len(deep)) == (300, 50)
    for part in (deep, records):
        assert {one["direction"] for one in part} == {"forward", "backward_data", "backward_weight"}


def test_edges_pose_every_kind_of_filter_in_every_direction() -> None:
    records = problems(CONV, "conv-edges-bf16")
    kinds: list[Callable[[Record], bool]] = [
        lambda one: one["di"] > 1, lambda one: one["g"] == one["c"] > 1, lambda one: 1 < one["g"] < one["c"],
        lambda one: one["stride_h"] > one["y"], lambda one: one["stride_h"] != one["stride_w"],
        lambda one: one["dilation_h"] > 1, lambda one: one["pad_h"] >= one["y"], lambda one: one["y"] == one["hi"] > 1,
        lambda one: one["y"] > one["hi"], lambda one: one["y"] != one["x"],
    ]  # fmt: skip
    directions = [{one["direction"] for one in records if kind(one)} for kind in kinds]
    assert all(one == {"forward", "backward_data", "backward_weight"} for one in directions)


@pytest.mark.parametrize("key", [key for key in KEYS if key.startswith("conv") and key.endswith("bf16")])
def test_every_key_holds_legal_problems(key: str) -> None:
    records = problems(CONV, key)
    assert records and all(CONV.flops(one) > 0 and one["dtype"] == "bf16" for one in records)
    with pytest.raises(ValueError, match="is a key of another operation than gemm"):
        problems(measurable("gemm"), key)


@pytest.mark.parametrize(
    ("change", "message"),
    [({"sized": 1}, "unknown keys"), ({"part": "all"}, "part is 'all'"), ({"layers": ["9x9"]}, "no layer is of kind")],
)
def test_a_wrong_record_of_a_network_is_refused(change: dict[str, object], message: str) -> None:
    record = {"name": "n", "family": "f", "part": "tuning", "dims": 2, "stages": [[8, 4]], "layers": ["1x1"]}
    with pytest.raises(ValueError, match=message):
        read_network(json.loads(json.dumps({**record, **change})))
