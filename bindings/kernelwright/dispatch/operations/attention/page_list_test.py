"""Lists of pages that are shorter than ``page_indptr`` says: refused before anything is read beyond their end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import ArrayError, AttentionProblem
from kernelwright.dispatch.operations.attention.binder import AttentionBinder
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="module", autouse=True)
def _native() -> None:
    mocks.native_library()


def binder_of(memory: str = "cpu") -> AttentionBinder:
    problem = AttentionProblem("forward", 2, 1, 1, 1, 32, 16, dtype="fp32", page_table="list", page_size=8, pages=5)
    return AttentionBinder(problem, memory)


def operands(indptr: list[int], entries: int = 3) -> tuple[Any, ...]:
    cache, q = np.zeros((5, 8, 1, 16), np.float32), np.zeros((2, 1, 1, 16), np.float32)
    given = {"q": q, "k": cache, "v": cache, "o": q.copy(), "page_table": np.zeros(entries, np.int32)}
    given |= {"page_indptr": np.array(indptr, np.int32), "last_page_lengths": np.ones(2, np.int32)}
    return tuple(given.get(name) for name in binder_of().names())


def test_a_list_is_as_long_as_its_first_places_say() -> None:
    binder = binder_of()
    for indptr in ([0, 1, 3], [0, 0, 0], [0, 2, 2]):
        binder.check(operands(indptr), None)
    for indptr in ([0, 1, 4], [0, 4, 3]):  # the second: request 0 would read 4 pages, request 1 none
        with pytest.raises(ArrayError, match=r"page_indptr goes to 4; page_table has 3 pages; allowed: up to 3"):
            binder.check(operands(indptr), None)


def test_a_guard_reads_the_values_of_each_call() -> None:
    binder = binder_of()
    guard = binder.guard(operands([0, 1, 3]))
    assert guard is not None and guard.addresses(operands([0, 2, 3])) is not None
    assert guard.addresses(operands([0, 1, 4])) is None
    assert guard.addresses(operands([0, 1, 3], entries=4)) is None  # another list: checked in full


def test_what_lies_in_the_memory_of_a_gpu_is_not_read() -> None:
    guard = binder_of("cuda:0").guard(operands([0, 1, 4]))
    assert guard is not None and guard.addresses(operands([0, 1, 4])) is not None
