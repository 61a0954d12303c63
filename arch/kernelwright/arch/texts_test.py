from __future__ import annotations

from kernelwright.arch.texts import shortened


def test_long_input_is_not_repeated_whole() -> None:
    assert shortened(f"unknown arch 'gfx'\n  {'k' * 240}") == f"unknown arch 'gfx'\n  {'k' * 240}"
    text = shortened(f"unknown arch {'x' * 100_000!r}; known: gfx942")
    assert len(text) < 250 and "(100002 characters)" in text and text.endswith("known: gfx942")
    listed = shortened(f"values = {list(range(20_000))}: write a list")
    assert len(listed) < 4100 and listed.endswith("write a list")


def test_input_that_is_repeated_does_nothing_to_a_terminal() -> None:
    assert shortened("spec \x1b[31m\u202e\0\r is ü\n  why") == "spec \\x1b[31m\\u202e\\x00\\r is ü\n  why"
