from __future__ import annotations

import json
from typing import Any

import pytest

from kernelwright.dispatch import Explanation, GemmProblem, RankedValue
from kernelwright.dispatch.core.explanation import BOUNDS, FITTED, claim_of


def kernel(name: str, rank: int | None, **fields: Any) -> dict[str, Any]:
    about = {"name": name, "arch": "gfx942", "identity": name * 3, "library": "made up", "priority": 0}
    refused = {"supported": False, "rank": None, "score": None, "reason": "it is too wide"}
    return {
        **about,
        **(refused if rank is None else {"supported": True, "rank": rank, "score": 1.5, "reason": None}),
        **fields,
    }


def stage(chosen: str | None, *kernels: dict[str, Any]) -> dict[str, Any]:
    reason = f"{chosen} is best" if chosen else "no kernel serves this problem"
    said = {"problem": {"op": "part"}, "chosen": chosen and chosen * 3, "reason": reason, "kernels": kernels}
    return {**said, "ranked_by": "predicted time"}


def explanation(*stages: dict[str, Any]) -> Explanation:
    text = json.dumps({"problem": {"op": "whole"}, "selection": "auto", "stages": stages})
    return Explanation.parse(GemmProblem(1, 2, 3), text)


def test_every_stage_has_a_ranking() -> None:
    estimate = dict.fromkeys(("tiles", "waves", "compute_us", "fill_us", "memory_us", "total_us", "useful"), 1.0)
    split = kernel("split", 1, estimate=estimate, choices="split_k=4")
    explained = explanation(stage("split", split, kernel("wide", None)), stage("combine", kernel("combine", 1)))
    assert [one.chosen and one.chosen.name for one in explained.stages] == ["split", "combine"]
    assert explained.chosen is explained.stages[0].chosen and explained.reason == "split is best"
    assert [one.name for one in explained] == ["split", "wide"] and explained.stages[1].problem == {"op": "part"}
    lines = str(explained).splitlines()
    assert lines[0] == "gemm fp32 rcr 1x2x3, selection auto, ranked by predicted time: split is best"
    assert "fitted to measurements that AMD published" in lines[1] and lines[1].endswith("never measured by us")
    assert lines[2] == "stage 0, ranked by predicted time: split is best"
    assert lines[5] == "stage 1, ranked by predicted time: combine is best"
    assert lines[3].endswith("1 tiles in 1 waves, split_k=4") and lines[4].endswith("no: it is too wide")


def test_a_stage_without_a_kernel_leaves_nothing_to_run() -> None:
    explained = explanation(stage("split", kernel("split", 1)), stage(None, kernel("wide", None)))
    assert explained.chosen is None and explained.reason == "no kernel serves this problem"
    assert explained.stages[0].chosen is not None


def test_pairs_of_kernels_and_values_are_ranked_together() -> None:
    values = [{"value": 4, "choices": "split_k=4", "score": 1.5}, {"value": 1, "choices": "split_k=1", "score": 9.0}]
    unusable = {"value": 2, "choices": "split_k=2", "score": None}
    split = kernel("split", 1, choices="split_k=4", values=[*values, unusable])
    first_stage = explanation(stage("split", split, kernel("whole", 2, score=2.5), kernel("wide", None))).stages[0]
    assert first_stage.kernels[0].values[0] == RankedValue(4, "split_k=4", 1.5)
    ranked = [(one.name, value.value, value.score) for one, value in first_stage.pairs]
    assert ranked == [("split", 4, 1.5), ("whole", 0, 2.5), ("split", 1, 9.0)]


@pytest.mark.parametrize(
    ("arch", "claim"),
    [
        *((arch, FITTED) for arch in ("gfx942", "gfx950")),
        *((arch, BOUNDS) for arch in ("gfx90a", "gfx1100", "gfx1201")),
        *((arch, "") for arch in ("sm_90a", "x86_64_v3", "x86_64_v4", "made_up")),
    ],
)
def test_what_times_rest_on(arch: str, claim: str) -> None:
    assert claim_of(arch) == claim
