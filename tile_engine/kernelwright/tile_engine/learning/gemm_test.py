"""The features of GEMM hold the dispatcher's predicted time."""

from __future__ import annotations

import math

import pytest

from kernelwright.arch import load
from kernelwright.codegen.formulas.made import find
from kernelwright.codegen.formulas.translate import constants
from kernelwright.codegen.heuristics.schema import schema_of
from kernelwright.codegen.operations.gemm.spec import gemm_spec
from kernelwright.codegen.operations.gemm.time_model.times import estimate
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.problems.gemm.problem import GemmProblem
from kernelwright.tile_engine.learning.gemm import GemmLearning

SCHEMA = schema_of("gemm")
TILES = {
    "plain": {"tile": [128, 128, 64], "wave": [2, 1, 1], "warp_tile": [64, 128, 16], "scheduler": "cooperative"},
    "pingpong": {"tile": [64, 96, 128], "wave": [1, 1, 1], "warp_tile": [64, 96, 16], "scheduler": "pingpong"},
    "swapped": {"tile": [48, 64, 128], "wave": [1, 1, 1], "warp_tile": [48, 64, 16], "scheduler": "pingpong"},
    "two stages": {"tile": [128, 256, 128], "wave": [2, 1, 1], "warp_tile": [64, 256, 16], "scheduler": "cooperative"},
}
CLUSTERS = ([1, 1, 1], [2, 1, 1], [1, 2, 1])
PROBLEMS = ((1, 4096, 4096), (200, 1024, 16384), (333, 3072, 12288), (4096, 4096, 4096), (16384, 14336, 64))


def test_numbers_are_those_of_the_formula() -> None:
    terms = {name: float(text) for name, text in SCHEMA.terms.items() if name.startswith("k")}
    formula = constants(find("operations.gemm.formulas.hopper").text)
    numbers = {"k" + "".join(word.capitalize() for word in name.split("_")): value for name, value in formula.items()}
    assert terms and terms.items() <= numbers.items()


@pytest.mark.parametrize("cluster", CLUSTERS, ids=lambda one: f"{one[0]}x{one[1]}")
@pytest.mark.parametrize("tile", TILES)
def test_the_prior_is_the_predicted_time(tile: str, cluster: list[int]) -> None:
    arch = load("sm_90a")
    raw = {"op": "gemm", "dtype": "bf16", "layout": "rcr", "persistent": True, "cluster": cluster, **TILES[tile]}
    cooperative = TILES[tile]["scheduler"] == "cooperative"
    for split in (False, True)[: 2 if cooperative else 1]:
        spec = gemm_spec(parse_kernel({**raw, "split_k": split}, arch))
        for m, n, k in PROBLEMS:
            for slices in (1, 3, 8)[: 3 if split else 1]:
                problem = GemmProblem(m, n, k, "bf16")
                expected = estimate(spec, problem, arch, slices, 132).total_us
                record = {"m": m, "n": n, "k": k, "batch": 1}
                given = {**GemmLearning().inputs(record, spec.model_dump(mode="json"), slices), "units": 132.0}
                values = dict(zip(SCHEMA.features, SCHEMA.values(given), strict=True))
                assert math.exp(values[SCHEMA.prior]) == pytest.approx(2e-6 * m * n * k / expected)
