from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.tile_engine.interface.bench_command import stated_variant
from kernelwright.tile_engine.problems.registry import KEYS, operation_of, problems
from kernelwright.tile_engine.registry import measurable

GEMM = measurable("gemm")


@pytest.mark.parametrize("key", [key for key in KEYS if key.startswith("gemm-") and "edges" not in key])
def test_every_key_has_problems_of_its_dtype(key: str) -> None:
    records = problems(GEMM, key)
    assert len(records) >= (200 if "tall" in key else 300)
    assert {record["dtype"] for record in records} == {key.rpartition("-")[2]}


@pytest.mark.parametrize(("operation", "word"), [("gemm", "gemm"), ("convolution", "conv"), ("attention", "attention")])
def test_edges_are_beside_powers_of_two(operation: str, word: str) -> None:
    measured = measurable(operation)
    records = problems(measured, f"{word}-edges-bf16")
    assert {1, 2, 7, 63, 65, 127, 129, 257, 1023} <= {value for one in records for value in one.values()}
    assert max(measured.flops(one) for one in records) < 2e9  # quick to check on a CPU


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_file_holds_a_list_or_an_object_with_one(tmp_path: Path, wrapped: bool) -> None:
    listed = [{"m": 1, "n": 2, "k": 3, "batch": 1, "layout": "rrr", "dtype": "fp32"}, {"m": 1, "n": 2, "k": 3}]
    path = tmp_path / "p.json"
    path.write_text(json.dumps({"problems": listed * 2} if wrapped else listed))
    assert [(record["layout"], record["dtype"]) for record in problems(GEMM, str(path))] == [
        ("rrr", "fp32"),
        ("rcr", "fp16"),
    ]


@pytest.mark.parametrize(
    ("content", "op"),
    [
        ([{"m": 1, "n": 2, "k": 3}], "gemm"),
        ({"problems": [{"M": 1, "N": 2, "K": 3}]}, "gemm"),
        ([{"n": 1, "c": 2, "k": 3, "hi": 4, "wi": 5, "y": 1, "x": 1}], "convolution"),
        ([{"batch": 1, "nhead_q": 2}], "attention"),
        ({"op": "convolution", "problems": [{"m": 1}]}, "convolution"),
        ([{"dtype": "fp16"}], ""),
        ([{"m": 1, "hi": 2}], ""),
        ([3], ""),
        ([], ""),
    ],
)
def test_no_operation_is_meant_in_silence(tmp_path: Path, content: object, op: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(content))
    assert operation_of(str(path)) == op
    if not op:
        with pytest.raises(ValueError, match=r"not say of which operation .* allowed: .*gemm, norm; add --variant"):
            stated_variant(None, str(path))
    assert stated_variant("forward", str(path)) == stated_variant(None, str(path), {"variant": "forward"}) == "forward"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "is not JSON"),
        ("{}", "holds no list of problems"),
        ("[]", "holds no problem"),
        ("[3]", r"problem 0 of .*p\.json is 3; write an object such as"),
        ('[{"m": 1, "n": 2, "k": 3}, {"m": -1, "n": 2, "k": 3}]', r"problem 1 of .*p\.json: .*m is -1"),
        ('[{"m": 1, "M": 2, "n": 2, "k": 3}]', "states m in capitals and without"),
        ('[{"m": 1, "m": 2, "n": 2, "k": 3}]', "'m'"),
        ('[{"m": 1, "n": 2, "k": 3, "layout": {"a": "r"}}]', "layout is an object or a list; write a number or a word"),
        ('[{"m": NaN, "n": 2, "k": 3}]', "NaN is no number of JSON"),
        ('[{"m": true, "n": 2, "k": 3}]', "m is true or false; write a number"),
        ('[{"m": 1}]', "lacks n, k"),
    ],
)
def test_a_file_that_holds_no_problem_says_why(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        problems(GEMM, str(path))


def test_an_unknown_key_names_the_closest() -> None:
    with pytest.raises(
        ValueError, match="'gemm' is neither a file nor a key such as attention-tuning-prefill-fp32; `tile-engine"
    ):
        problems(GEMM, "gemm")
    with pytest.raises(ValueError, match=r"did you mean 'gemm-held-out-bf16'\?"):
        problems(GEMM, "gemm-heldout-bf16")


def test_what_is_no_file_is_of_no_operation(tmp_path: Path) -> None:
    for named in (str(tmp_path / "none.json"), "gemm-tuning-fp23"):
        with pytest.raises(ValueError, match="is neither a file nor a key"):
            operation_of(named)
