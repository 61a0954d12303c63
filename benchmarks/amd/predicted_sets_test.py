"""AMD's release sets are what the committed results chose, and their predicted times are still those."""

from __future__ import annotations

import functools
import itertools
import json
import math
from typing import Any

import numpy as np
import pytest
from amd.predicted_sets import (
    GROUPS,
    Best,
    Group,
    beside_the_matrix_core,
    candidates,
    covering,
    eligible,
    problems,
    summary,
)
from amd.release import ABOUT, ROOT, rows, worth

from amd import predicted_sets
from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.spec import gemm_spec
from kernelwright.codegen.operations.gemm.time_model.model import GemmTimeModel
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.tile_engine.problems.models import HELD_OUT, TUNING
from kernelwright.tile_engine.results.cover import Step

ARCHS = ("gfx942", "gfx950")
BF16, CRR = GROUPS[0], GROUPS[2]
SAMPLED = 23  # each so many problems are predicted again


@functools.cache
def results(arch: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / f"benchmarks/results/amd_release_{arch}.json").read_text())
    return document


def release(arch: str) -> list[Kernel]:
    return list(expand_set("gemm:release", load(arch)).kernels)


@pytest.mark.parametrize("arch", ARCHS)
def test_the_set_has_the_chosen_kernels_and_those_of_coverage(arch: str) -> None:
    chosen = {step["kernel"] for group in results(arch)["results"] for step in group["steps"] if step["release"]}
    twins = {name.replace("_bf16_", "_fp16_", 1) for name in chosen if "_fp8_" not in name}
    coverage = {kernel.name for kernel in expand_set("gemm:coverage", load(arch)).kernels}
    assert {kernel.name for kernel in release(arch)} == chosen | twins | coverage
    assert results(arch)["about"] == ABOUT and len(chosen) >= 8


@pytest.mark.parametrize(("arch", "place"), list(itertools.product(ARCHS, range(len(GROUPS)))))
def test_held_out_problems_are_predicted_as_the_results_say(arch: str, place: int) -> None:
    """By the formula in Python, with today's constants; the results are of the same formula in C."""
    group, loaded, model = GROUPS[place], load(arch), GemmTimeModel()
    result = results(arch)["results"][place]
    kernels = [one for one in release(arch) if gemm_spec(one).stream_k == "none"]
    us = Best(*(np.array(result["us, held out"][name]) for name in Best._fields))
    stated = result[HELD_OUT]["release"]
    assert summary(us) == pytest.approx(stated, abs=2e-4)
    served = [one for one in problems(HELD_OUT, group) if any(model.microseconds(k, one, loaded) for k in kernels)]
    assert len(served) == stated["problems"] == len(us.chosen)
    for index in range(0, len(served), SAMPLED):
        taken = [model.microseconds(kernel, served[index], loaded) for kernel in kernels]
        assert min(filter(None, taken)) == pytest.approx(us.chosen[index], rel=1e-4)


@pytest.mark.parametrize("arch", ARCHS)
def test_the_page_states_the_results(arch: str) -> None:
    page = (ROOT / "docs/benchmarks.md").read_text()
    assert all(f"{row}\n" in page for row in rows(results(arch)))


@pytest.mark.parametrize("arch", ARCHS)
def test_chosen_kernels_have_forms_with_few_conflicts_and_no_kernel_is_stream_k(arch: str) -> None:
    loaded = load(arch)
    coverage = set(expand_set("gemm:coverage", loaded).kernels)
    counted = {(group.dtype, group.layout): beside_the_matrix_core(loaded, group) for group in GROUPS}
    chosen = [gemm_spec(kernel) for kernel in release(arch) if kernel not in coverage]
    assert chosen and {one.stream_k for one in chosen} == {"none"}
    for one in chosen:
        assert eligible(one, counted[str(one.dtype_a).replace("fp16", "bf16"), str(one.layout)])
    assert {gemm_spec(kernel).stream_k for kernel in covering(loaded)} == {"none"}


@pytest.mark.parametrize("group", GROUPS, ids=[group.text for group in GROUPS])
def test_no_weight_of_a_held_out_problem_is_one_of_tuning(group: Group) -> None:
    def weights(part: str) -> set[tuple[int, int]]:
        axes = {"rcr": ("n", "k"), "rrr": ("k", "n"), "crr": ("m", "n")}[group.layout]
        return {(getattr(one, axes[0]), getattr(one, axes[1])) for one in problems(part, group)}

    assert len(weights(TUNING)) > 50 and not weights(TUNING) & weights(HELD_OUT)


def test_forward_problems_have_their_epilogues() -> None:
    served = problems(TUNING, BF16)
    assert {(one.num_d, one.activation) for one in served} >= {(0, "none"), (1, "none"), (1, "gelu"), (0, "relu")}
    assert all(one.split_k == 0 for one in served)


def test_one_kernel_stands_for_a_tile_by_counted_clocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicted_sets, "SIDES", (128,))
    made = [gemm_spec(kernel) for kernel in candidates(load("gfx942"), CRR)]
    keys = [(spec.tile, spec.wave, spec.split_k) for spec in made]
    assert len(set(keys)) == len(keys) > 4
    (square,) = (one for one in made if one.tile.k == 32 and (one.wave.m, one.wave.n, one.split_k) == (2, 2, False))
    # 32x32x16 reads and writes LDS with 224 clocks of conflicts, 32x32x8 with 96 (docs/counts.md)
    assert (square.warp_tile.m, square.warp_tile.n, square.warp_tile.k) == (32, 32, 8)


def test_kernels_are_taken_while_each_gains_enough() -> None:
    steps = [Step("a", "a", 0.5, 0.1, 1), Step("b", "b", 0.51, 0.1, 2), Step("c", "c", 0.515, 0.1, 3)]
    assert worth(steps, 0.4, 0.015) == 2
    assert worth(steps, 0.495, 0.015) == 0 and worth(steps[:2], 0.4, 0.015) == 2


def test_a_summary_counts_what_a_set_leaves_unserved() -> None:
    assert summary(Best(np.array([1.0, 2.0]), np.array([2.0, 2.0]))) == {
        "problems": 2, "mean": round(math.sqrt(0.5), 4), "P10": 0.5, "least": 0.5,
    }  # fmt: skip
    assert summary(Best(np.array([1.0, 2.0]), np.array([math.inf, 2.0]))) == {"problems": 2, "unserved": 1}
