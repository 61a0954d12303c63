from __future__ import annotations

import pytest

from kernelwright.tile_engine.problems.gemm import ROWS, few_rows_problems, layer_problems, tall_problems
from kernelwright.tile_engine.problems.linear_layers import LinearLayer, linear_layers
from kernelwright.tile_engine.problems.models import HELD_OUT, PARTS, TUNING, Model, models, read_model

PROBLEMS = {part: layer_problems(part) for part in PARTS}


def test_families_are_many_and_have_one_part() -> None:
    parts: dict[str, set[str]] = {}
    for model in models():
        parts.setdefault(model.family, set()).add(model.part)
    assert all(len(own_parts) == 1 for own_parts in parts.values())
    assert sum(own_parts == {HELD_OUT} for own_parts in parts.values()) >= 12
    assert len({model.name for model in models()}) == len(models())


def test_three_hundred_problems_are_held_out() -> None:
    assert len(PROBLEMS[HELD_OUT]) >= 300


def test_no_held_out_weight_is_tuned_on() -> None:
    tuned = {(problem.n, problem.k) for problem in PROBLEMS[TUNING]}
    assert not [problem for problem in PROBLEMS[HELD_OUT] if (problem.n, problem.k) in tuned]


def test_tall_layers_are_tuned_on_with_other_numbers_of_rows() -> None:
    tall = tall_problems()
    assert len({(one.m, one.n, one.k) for one in tall}) == len(tall) > 200
    assert all(one.k >= 2 * one.n and 16 <= one.m <= 1100 for one in tall)
    problems = {part: {(one.m, one.n, one.k) for one in PROBLEMS[part]} for part in PARTS}
    assert not problems[TUNING] & {(one.m, one.n, one.k) for one in tall}
    assert not {(n, k) for _, n, k in problems[HELD_OUT]} & {(one.n, one.k) for one in tall}


@pytest.mark.parametrize("part", PARTS)
def test_few_rows_are_other_problems_of_the_same_layers(part: str) -> None:
    few = {(one.m, one.n, one.k) for one in few_rows_problems(part)}
    problems = {(one.m, one.n, one.k) for one in PROBLEMS[part]}
    assert len(few) == len(few_rows_problems(part)) > 800
    assert not few & problems
    assert {(n, k) for _, n, k in few} == {(n, k) for _, n, k in problems}
    assert {m for m, _, _ in few} == {m for rows in ROWS[:3] for m in rows}


@pytest.mark.parametrize("part", PARTS)
def test_every_number_of_rows_is_met_and_no_problem_stands_twice(part: str) -> None:
    problems = PROBLEMS[part]
    assert {problem.m for problem in problems} == {m for rows in ROWS for m in rows}
    assert len({(p.m, p.n, p.k, p.epilogue) for p in problems}) == len(problems)


def test_extents_are_not_all_powers_of_two_or_multiples_of_a_tile() -> None:
    for part in PARTS:
        assert any(problem.n % 128 for problem in PROBLEMS[part])
        assert any(problem.k % 128 for problem in PROBLEMS[part])
        assert any(problem.k >= 4 * problem.n for problem in PROBLEMS[part])  # tall K


def test_layers_of_a_dense_model() -> None:
    assert linear_layers(by_name("OPT-13B")) == (
        LinearLayer("q, k, v", 15360, 5120, "bias"),
        LinearLayer("attention output", 5120, 5120, "bias"),
        LinearLayer("fc1", 20480, 5120, "bias_relu"),
        LinearLayer("fc2", 5120, 20480, "bias"),
        LinearLayer("output projection", 50272, 5120, last_tokens_only=True),
    )


def test_layers_of_grouped_queries_and_of_experts() -> None:
    layers = {layer.name: (layer.n, layer.k) for layer in linear_layers(by_name("Qwen3-30B-A3B"))}
    assert layers["q, k, v"] == (5120, 2048)
    assert layers["gate and up of one expert"] == (1536, 2048)
    assert layers["down of one expert"] == (2048, 768)


def test_layers_of_latent_attention() -> None:
    layers = {layer.name: (layer.n, layer.k) for layer in linear_layers(by_name("DeepSeek-V3"))}
    assert layers["q and kv, compressed"] == (2112, 7168)
    assert layers["q, expanded"] == (24576, 1536)
    assert layers["kv, expanded"] == (32768, 512)
    assert layers["attention output"] == (7168, 16384)


def test_a_record_says_what_is_wrong() -> None:
    record = {"name": "x", "family": "x", "part": "both", "hidden": 1, "heads": 1, "ffn": 1, "activation": "gelu"}
    with pytest.raises(ValueError, match="x: part is 'both'; allowed: tuning, held-out"):
        read_model(record)
    with pytest.raises(ValueError, match=r"unknown keys \['hiden'\]"):
        read_model({**record, "hiden": 1})
    with pytest.raises(ValueError, match="no part of the models is called 'all'; allowed: tuning, held-out"):
        layer_problems("all")


def by_name(name: str) -> Model:
    return next(model for model in models() if model.name == name)
