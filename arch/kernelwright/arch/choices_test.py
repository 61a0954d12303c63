from __future__ import annotations

import pytest

from kernelwright.arch.choices import Choices, expand_triples


@pytest.mark.parametrize(
    ("raw", "values", "text"),
    [
        (8, [8], "8"),
        ([16, 8], [8, 16], "8, 16"),
        ({"min": 8, "max": 24, "step": 8}, [8, 16, 24], "8 to 24 in steps of 8"),
        ({"min": 1, "max": 2}, [1, 2], "1 to 2 in steps of 1"),
    ],
)
def test_three_spellings(raw: object, values: list[int], text: str) -> None:
    choices = Choices.parse(raw)
    assert list(choices) == values and str(choices) == text
    assert all(value in choices for value in values) and 7 not in choices


@pytest.mark.parametrize(
    "raw", ["8", 8.0, True, [], [1, "2"], {"min": 1}, {"min": 2, "max": 1}, {"min": 1, "max": 2, "stop": 3}, None]
)
def test_anything_else_is_refused(raw: object) -> None:
    with pytest.raises(ValueError, match="is no number, list of numbers"):
        Choices.parse(raw)


def test_nearest_prefers_the_larger_of_two() -> None:
    choices = Choices.parse({"min": 16, "max": 64, "step": 16})
    assert [choices.nearest(value) for value in (1, 24, 40, 41, 1000)] == [16, 32, 48, 48, 64]


def test_triples_expand_in_order_and_once() -> None:
    assert expand_triples([[1, 2, [4, 8]], [1, 2, 4]]) == ((1, 2, 4), (1, 2, 8))
    for raw in (3, [3], [[1, 2]], [[1, 2, "x"]]):
        with pytest.raises(ValueError, match="is "):
            expand_triples(raw)
