from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.inputs import Input, check_kinds, checked, read_json
from kernelwright.codegen.violations import SpecError


class _Inner(Input):
    name: str
    count: int = 0
    share: float = 0.0


class _Outer(Input):
    inner: list[_Inner]


@dataclass(frozen=True)
class _Posed:
    m: int
    scale: float = 1.0
    lse: bool = False
    dtype: str = "fp32"
    stride: int | None = None
    window: tuple[int, int] = (-1, -1)


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


@pytest.mark.parametrize(
    "given",
    [
        *({"m": value} for value in (0.5, True, "1", None, [1], 2**63)),
        *({"scale": value} for value in ("1", True, float("inf"), float("nan"), 2**64, None)),
        *({"lse": 1}, {"dtype": 3}, {"stride": 0.5}, {"window": (0.5, 1)}, {"window": "ab"}, {"window": [1, 2]}),
    ],
)
def test_fields_of_another_kind_are_refused(given: dict[str, Any]) -> None:
    check_kinds(_Posed(1, 2, True, "x", 3, (0, 1)))  # a whole number is a real one
    check_kinds(_Posed(1))
    (name,) = given
    with pytest.raises(TypeError, match=f"^{name} is .*; allowed: "):
        check_kinds(_Posed(**{"m": 1, **given}))


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "nan.json").write_text("[NaN]")
    with pytest.raises(SpecError, match=r"nan\.json' is not JSON: NaN is no number of JSON"):
        read_json(tmp_path / "nan.json")
    with pytest.raises(SpecError, match=r"cannot read '.*none\.json': No such file"):
        read_json(tmp_path / "none.json")
