"""Predicted times of problems with numbers to 2^62: each in bounded time, and without an exception of Python's own.

``KERNELWRIGHT_BOUNDS`` says how many problems of each operation are tried; CI tries a few.
"""

from __future__ import annotations

import functools
import itertools
import os
from collections.abc import Callable

import pytest

from bounds import drawn
from bounds.children import run_each
from kernelwright.arch import Arch, load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError

COUNT = int(os.environ.get("KERNELWRIGHT_BOUNDS", "300"))
SECONDS = 5.0
ARCHS = ("x86_64_v3", "gfx942", "sm_90a")
OPERATIONS = {
    "gemm": ("gemm", "gemm:essential", "gemm", drawn.gemm),
    "convolution": ("convolution", "convolution:essential", "convolution", drawn.convolution),
    "attention": ("attention", "attention:essential", "attention", drawn.attention),
    "append": ("attention", "attention:essential", "attention append", drawn.append),
}


@functools.cache
def kernels(name: str) -> list[tuple[Kernel, Arch]]:
    """Every eighth kernel of a set, of each architecture."""
    return [(kernel, load(arch)) for arch in ARCHS for kernel in expand_set(name, load(arch)).kernels[::8]]


@pytest.mark.parametrize("name", OPERATIONS)
def test_times_are_predicted_in_bounded_time(name: str) -> None:
    of, listed, recorded, draw = OPERATIONS[name]
    model, every = operation(of).time_model, kernels(listed)
    assert model is not None and every

    def predict(seed: int) -> None:
        try:
            problem = model.read(draw(seed), recorded)
        except SpecError:
            return
        assert model.candidate_sets(problem)
        for kernel, arch in every:
            for candidate in model.candidates(kernel, problem, arch):
                assert candidate.microseconds >= 0

    _check(predict)


def rows_of(batch: int, longest: int) -> int:
    """Queries of ragged requests of a row of the tile engine's table."""
    model = operation("attention").time_model
    assert model is not None
    words = {"direction": "forward", "mask": "none", "bias": "none", "dtype": "bf16", "layout": "bshd"}
    rest = ("sink", "lse", "deterministic", "page_size", "rotary_dim", "num_splits", "soft_cap")
    row = {**words, **dict.fromkeys(rest, 0), "ragged": 1, "nhead_q": 8, "nhead_k": 8, "hdim_q": 128, "hdim_v": 128}
    row |= {"batch": batch, "seqlen_q": longest, "seqlen_k": longest}
    total_q: int = model.measured({key: str(value) for key, value in row.items()}).whole.total_q
    return total_q


def test_requests_of_measured_rows_are_counted_in_bounded_time() -> None:
    def count(seed: int) -> None:
        one = drawn.Numbers(seed)
        batch, longest = one.wild(1), one.wild(2)
        try:
            assert rows_of(batch, longest) <= batch * longest
        except SpecError:  # rows that 64 bits do not count are refused
            assert batch * longest >= 2**57

    _check(count)


def test_requests_are_counted_as_one_by_one() -> None:
    for batch, longest in itertools.product(range(1, 12), range(2, 40)):
        assert rows_of(batch, longest) == sum(longest - longest * place // (2 * batch) for place in range(batch))


def _check(function: Callable[[int], None]) -> None:
    report = run_each(function, range(COUNT), SECONDS)
    assert not report.failures, "\n".join(report.failures)
    assert report.tried == COUNT
