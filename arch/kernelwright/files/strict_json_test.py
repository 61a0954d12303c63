from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.files.strict_json import MAX_DEPTH, JsonError, parse_json, read_json


def test_a_key_stands_once_in_an_object() -> None:
    assert parse_json('{"a": {"b": 1}, "b": [{"a": 2}]}') == {"a": {"b": 1}, "b": [{"a": 2}]}
    with pytest.raises(JsonError, match="the key 'b' is given twice in one object; keep one of them"):
        parse_json('{"a": {"b": 1, "c": 2, "b": 1}}')


def test_a_repeated_key_among_many_is_found_at_once() -> None:
    keys = ", ".join(f'"{number}": 0' for number in range(200_000))
    with pytest.raises(JsonError, match="'199999' is given twice"):  # in time linear in the number of keys
        parse_json(f'{{{keys}, "199999": 0}}')


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("NaN", "NaN is no number of JSON"),
        ("[-Infinity]", "-Infinity is no number of JSON"),
        ("1e999", "too large"),
        ("-1e999", "too large"),
        ("9" * 41, "has 41 characters; allowed: 40"),
        ("0." + "9" * 500, "has 502 characters; allowed: 400"),
        ("[" * 200_000, "nested deeper than 100"),
        ('{"a":' * 200_000, "nested deeper than 100"),
        ("[" * 101 + "]" * 101, "nested deeper than 100"),
        (b'"\xff"', "byte 1 is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "byte 0 is not UTF-8"),
        (b"\xef\xbb\xbf{}", "line 1, column 1"),
        ('["\\ud800"]', "half of a surrogate pair"),
        ('{"a\\u0000": 1}', "NUL"),
        ("", "line 1, column 1"),
        ("{} {}", "line 1, column 4"),
    ],
)
def test_what_is_refused(text: str | bytes, why: str) -> None:
    with pytest.raises(JsonError) as caught:
        parse_json(text)
    assert why in str(caught.value) and len(str(caught.value)) < 200


def test_usual_json_passes() -> None:
    value = {
        "a": [
            1,
            -2.5,
            1e-300,
            True,
            None,
            "ü\\ \ud83d\ude00 \\u0000".encode("utf-16", "surrogatepass").decode("utf-16"),
        ]
    }
    for ascii_only in (True, False):
        assert parse_json(json.dumps(value, ensure_ascii=ascii_only).encode()) == value
    deep = json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    assert parse_json("[" * MAX_DEPTH + "]" * MAX_DEPTH) == deep


def test_large_files_are_refused_before_they_are_parsed(tmp_path: Path) -> None:
    with (tmp_path / "large.json").open("wb") as file:
        file.truncate(200 << 20)  # sparse
    with pytest.raises(JsonError, match="more than 67108864 bytes"):
        read_json(tmp_path / "large.json")
    (tmp_path / "small.json").write_text("[1]")
    assert read_json(tmp_path / "small.json", 3) == [1]
    with pytest.raises(JsonError, match="more than 2 bytes"):
        read_json(tmp_path / "small.json", 2)
    with pytest.raises(OSError):
        read_json(tmp_path / "missing.json")
