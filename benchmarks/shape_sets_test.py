from __future__ import annotations

import json

import pytest
from shape_sets import FOLDER, FUSED, HELD_OUT, INT8_ROWS, PLAIN, SETS, TUNED, cases

_FAMILIES = json.loads((FOLDER / "held_out.json").read_text())["families"]


@pytest.mark.parametrize("what", [*PLAIN, "fused"])
@pytest.mark.parametrize("set_name", SETS)
def test_every_benchmark_has_shapes_that_every_library_accepts(set_name: str, what: str) -> None:
    all_cases = cases(set_name, what)
    assert len(all_cases) == len(set(all_cases)) >= 10
    assert {case.set for case in all_cases} == {set_name}
    for case in all_cases:
        assert case.n % 8 == case.k % 16 == 0, case  # TMA reads and writes rows of whole 16 bytes
        assert what != "int8" or case.m >= INT8_ROWS


def test_nothing_held_out_was_tuned_on() -> None:
    """Not even for another number of rows: the layers themselves are unseen."""
    tuned = {(case.n, case.k) for what in (*PLAIN, "fused") for case in cases(TUNED, what)}
    assert tuned.isdisjoint((layer["n"], layer["k"]) for family in _FAMILIES for layer in family["layers"])


def test_held_out_covers_dense_and_moe_families_and_odd_numbers_of_rows() -> None:
    assert {family["kind"] for family in _FAMILIES} == {"dense", "MoE"}
    assert len({family["family"] for family in _FAMILIES}) == len(_FAMILIES) >= 4
    rows = {case.m for case in cases(HELD_OUT, "bf16")}
    assert {1, 7, 40, 200, 1100, 8192} <= rows
    assert max(rows) == 8192


def test_fused_cases_have_the_epilogue_of_their_layer() -> None:
    fused_layers = {(case.family, case.origin, case.epilogue) for case in cases(HELD_OUT, "fused")}
    assert ("OPT-13B", "fc1", "bias_relu") in fused_layers
    assert ("OPT-13B", "fc1", "bias") not in fused_layers
    assert {("ViT-H/14", "fc1", "bias_gelu"), ("ViT-H/14", "fc1", "bias_gelu_erf")} <= fused_layers
    assert {epilogue for _, _, epilogue in fused_layers} == set(FUSED)
    assert not any(family == "Gemma 2 9B" for family, _, _ in fused_layers)


def test_a_case_says_what_it_computes() -> None:
    plain, fused = cases(TUNED, "bf16")[0], cases(TUNED, "fused")[0]
    assert (plain.what, str(plain)) == ("bf16", "bf16 256x256x256")
    assert (fused.what, fused.dtype) == ("bf16 + bias", "bf16")
