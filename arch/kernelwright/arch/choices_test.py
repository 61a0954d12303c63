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
    "entry",
    [
        [{"min": 1, "max": 2**40}, 1, 1],
        [{"min": 1, "max": 2**20}] * 3,
        [{"min": 1, "max": 300}, [16, 32], {"min": 1, "max": 300}],
    ],
)
def test_ranges_that_would_take_all_memory_are_refused(entry: object) -> None:
    with pytest.raises(ValueError, match=r"triples; widen a step|with 0 < min <= max <= 2\^20"):
        expand_triples([entry])
