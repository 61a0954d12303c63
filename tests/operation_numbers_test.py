"""Each operation's header assigns its numbers; the dispatcher's tables and the bindings have these and no others."""

from __future__ import annotations

import ctypes
import itertools
import re
from pathlib import Path

import pytest

from kernelwright.dispatch import ProblemError
from kernelwright.dispatch.core import native, operation
from kernelwright.dispatch.testdata import mocks

HEADERS = Path(__file__).parents[1] / "dispatcher_cpp/include/kernelwright"
OUTSIDE = 65536
_ENUMERATOR = re.compile(r"\bKW_OP_(\w+) = (\d+)")


def numbers() -> dict[str, dict[str, int]]:
    """The numbers that headers assign, by header and word."""
    by_header = {path.stem: dict(_ENUMERATOR.findall(path.read_text())) for path in HEADERS.glob("*.h")}
    return {name: {word: int(number) for word, number in words.items()} for name, words in by_header.items() if words}


def test_no_two_operations_have_a_number() -> None:
    assigned = numbers()
    assert {"gemm", "convolution", "attention"} <= set(assigned)
    flat = sorted((number, name) for name, words in assigned.items() for number in words.values())
    assert len({number for number, _ in flat}) == len(flat) and all(0 < number < OUTSIDE for number, _ in flat)
    changes = sum(one[1] != other[1] for one, other in itertools.pairwise(flat))
    assert changes == len(assigned) - 1, f"the numbers of two operations are mixed: {flat}"


def test_the_dispatcher_has_a_table_for_each_number() -> None:
    mocks.native_library()
    head = native.ProblemHead(ctypes.sizeof(native.ProblemHead), OUTSIDE - 1)
    with pytest.raises(ProblemError) as refused:
        native.check(native.library().kw_problem_validate(native.byref(head)))
    listed = [int(number) for number in re.findall(r"(\d+) \(", str(refused.value))]
    own = [number for number in listed if number < OUTSIDE]
    assert sorted(own) == sorted(number for words in numbers().values() for number in words.values())


def test_the_bindings_know_each_number() -> None:
    known = {code for code in operation._BY_CODE if code < OUTSIDE}
    assert known == {number for words in numbers().values() for number in words.values()}
