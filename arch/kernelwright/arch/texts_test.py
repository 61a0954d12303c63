from __future__ import annotations

import pytest

from kernelwright.arch.texts import parse_json, shortened


def test_a_key_stands_once_in_an_object() -> None:
    assert parse_json('{"a": {"b": 1}, "b": [{"a": 2}]}') == {"a": {"b": 1}, "b": [{"a": 2}]}
    with pytest.raises(ValueError, match="the key 'b' is given twice in one object; keep one of them"):
        parse_json('{"a": {"b": 1, "c": 2, "b": 1}}')


def test_long_input_is_not_repeated_whole() -> None:
    assert shortened(f"unknown arch 'gfx'\n  {'k' * 240}") == f"unknown arch 'gfx'\n  {'k' * 240}"
    text = shortened(f"unknown arch {'x' * 100_000!r}; known: gfx942")
    assert len(text) < 250 and "(100002 characters)" in text and text.endswith("known: gfx942")
    listed = shortened(f"values = {list(range(20_000))}: write a list")
    assert len(listed) < 4100 and listed.endswith("write a list")
