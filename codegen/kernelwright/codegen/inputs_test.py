from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.inputs import Input, checked, read_json, recorded_problem
from kernelwright.codegen.violations import SpecError
from kernelwright.problems.attention.problem import AttentionProblem


class _Inner(Input):
    name: str
    count: int = 0
    share: float = 0.0


class _Outer(Input):
    inner: list[_Inner]


_FORWARD: dict[str, Any] = {"direction": "forward", "batch": 2, "heads_q": 8, "heads_kv": 2, "seqlen_q": 16}
_FORWARD |= {"seqlen_k": 24, "hdim_q": 64}


def test_a_schema_converts_nothing_and_names_the_first_wrong_fields() -> None:
    assert checked(_Outer, {"inner": [{"name": "a", "share": 1}]}, "it").inner[0].share == 1
    for wrong in (
        {"count": True},
        {"count": 1.0},
        {"count": "1"},
        {"share": float("nan")},
        {"share": "1"},
        {"other": 1},
    ):
        with pytest.raises(SpecError, match=r"^it is wrong: .*inner\.0\.\w+") as caught:
            checked(_Outer, {"inner": [{"name": "a", **wrong}]}, "it")
        assert "pydantic" not in str(caught.value)
    with pytest.raises(SpecError, match=r"missing field 'inner.0.name'; missing field 'inner.1.name'; .*; and 97 more"):
        checked(_Outer, {"inner": [{}] * 100}, "it")


def test_problems_of_files_are_refused_as_specs_are() -> None:
    """Numbers and flags of files are what JSON writes, whatever programs may pass."""
    assert recorded_problem(AttentionProblem, {**_FORWARD, "scale": 1}, "problem").scale == 1
    cases: list[dict[str, Any]] = [
        *({"batch": value} for value in (0.5, True, "1", None, [1], 2**63)),
        *({"scale": value} for value in ("1", True, float("inf"), float("nan"))),
        *({"lse": 1}, {"dtype": 3}, {"q_strides": 0.5}, {"mask": "top_left", "window": [0.5, 1]}, {"window": "ab"}),
    ]
    for wrong in cases:
        with pytest.raises(SpecError, match=f"{list(wrong)[-1]} is |is no problem"):
            recorded_problem(AttentionProblem, {**_FORWARD, **wrong}, "problem")


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "nan.json").write_text("[NaN]")
    with pytest.raises(SpecError, match=r"nan\.json' is not JSON: NaN is no number of JSON"):
        read_json(tmp_path / "nan.json")
    with pytest.raises(SpecError, match=r"cannot read '.*none\.json': No such file"):
        read_json(tmp_path / "none.json")
