"""Loops of functions that are written down as lines: ``m`` is a matrix instruction, ``j2`` a jump to line 2, ``c2`` a
conditional one, ``e`` the end; anything else does nothing."""

from __future__ import annotations

import pytest

from kernelwright.files.counts.line import Line
from kernelwright.files.counts.loops import loops, main_loop

_NAMES = {"m": "v_mfma_f32_32x32x8_f16", "e": "s_endpgm", "j": "s_branch", "c": "s_cbranch_scc1"}


def function(text: str) -> list[Line]:
    return [
        Line(_NAMES.get(word[0], "s_nop"), goal=int(word[1:]) if word[0] in "jc" else None) for word in text.split()
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n n e", []),
        ("n m c1 e", [{1, 2}]),
        ("c0 e", [{0}]),
        ("n m n c2 c1 e", [{1, 2, 3, 4}, {2, 3}]),  # one inside of another
        ("n c4 n c1 e", [{1, 2, 3}]),  # left in the middle
        ("n c4 n j5 n c1 e", [{1, 2, 3, 4, 5}]),  # two ways through it
        ("j3 n e n c1 e", []),  # a jump to a shared end that stands in front
        ("c3 n n n c2 e", []),  # entered in the middle: block 2 does not dominate the branch
        ("n c3 c1 c1 e", [{1, 2, 3}]),  # two branches back to one block
    ],
)
def test_natural_loops(text: str, expected: list[set[int]]) -> None:
    assert [set(loop) for loop in loops(function(text))] == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n c0 e", None),  # no matrix instruction
        ("m n e", None),  # outside of any loop
        ("m c0 m m c2 e", {2, 3, 4}),  # the one with most
        ("m c0 m c2 e", {0, 1}),  # of equals, the first
        ("m m m m c3 c0 e", {3, 4}),  # the inner one, though the outer has more
        ("m n c1 c0 e", {0, 1, 2, 3}),  # an inner one without
    ],
)
def test_the_main_loop(text: str, expected: set[int] | None) -> None:
    loop = main_loop(function(text))
    assert (None if loop is None else set(loop)) == expected


def test_code_that_nothing_reaches_closes_no_loop() -> None:
    assert loops(function("e n c1 e")) == []
