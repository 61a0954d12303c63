from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.codegen.batching.batch import MOST, sizes


@pytest.mark.parametrize(
    ("count", "jobs", "expected"),
    [(0, 2, []), (1, 1, [1]), (8, 1, [8]), (9, 1, [5, 4]), (8, 2, [4, 4]), (8, 16, [1] * 8), (17, 2, [6, 6, 5])],
)
def test_no_processor_idles_while_another_has_a_batch(count: int, jobs: int, expected: list[int]) -> None:
    assert sizes(count, jobs) == expected


@given(st.integers(0, 20000), st.integers(1, 256))
def test_every_compile_is_in_one_batch_of_nearly_equal_ones(count: int, jobs: int) -> None:
    batch_sizes = sizes(count, jobs)
    assert sum(batch_sizes) == count
    if batch_sizes:
        assert min(batch_sizes) >= 1 and max(batch_sizes) <= min(MOST, min(batch_sizes) + 1)
        assert len(batch_sizes) >= min(count, jobs)
