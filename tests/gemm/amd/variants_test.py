"""Every shipped AMD GEMM kernel of a variant is run in the simulator, through its own functions of the C ABI.

Sizes have tails in M, N and K and 1 to 9 K loops, rows have gaps, memory around results and workspaces is guarded, and
both begin as NaN. Sums of small integers must be exact; the error of random numbers must stay below twice that of a
plain run in the same precision, and three launches give the same bits.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache

import pytest

from gemm.amd.shipped import ARCHS, library, named
from gemm.amd.variant_cases import cases_of
from gemm.amd.variants import Bench, Case, is_plain
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.run import device

KERNELS = [(arch, kernel) for arch in ARCHS for kernel in library(arch).kernels if not is_plain(kernel)]
CASES = [(arch, kernel.name, case) for arch, kernel in KERNELS for case in cases_of(kernel)]
NAMES = [(arch, kernel.name) for arch, kernel in KERNELS]


@cache
def bench(arch: str, name: str) -> Bench:
    return Bench(library(arch), named(arch, name))


@pytest.mark.thorough(keep=4, each="kernel")
@pytest.mark.parametrize(("arch", "kernel", "case"), CASES, ids=["-".join(map(str, each)) for each in CASES])
def test_every_result_is_right(arch: str, kernel: str, case: Case) -> None:
    bench(arch, kernel).run(case)
    report = device.last_reports()[0]
    assert report.simulated and report.arch == arch
    assert (report.counts["matrix"] > 0) == (case.k > 0)


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize(("arch", "kernel"), NAMES)
def test_no_check_finds_anything_in_any_order_of_waves(arch: str, kernel: str) -> None:
    """And the results have the same bits in all of them."""
    entry = next(each for of, each in KERNELS if (of, each.name) == (arch, kernel))
    tried = [case for case in cases_of(entry) if not case.whole]
    # One tile is not shared by stream-K's workgroups; elsewhere it is enough.
    case = tried[0] if entry.spec.get("stream_k") else min(tried, key=lambda case: case.m * case.n * case.batch)
    results = set()
    for seed in (None, 1, 2) if os.environ.get("KERNELWRIGHT_EVERY") else (None, 1):
        with device.configure(checks=Checks(uninitialised=True, races=True, waits=True), seed=seed):
            results.add(bench(arch, kernel).run(case, repeats=1))
    assert len(results) == 1


@pytest.mark.parametrize(("arch", "kernel"), NAMES)
def test_other_variants_are_refused(arch: str, kernel: str) -> None:
    one = bench(arch, kernel)
    if one.grouped:
        pytest.skip("has another problem")
    case = Case(64, 64, 128)
    problem = one.problem(case, one.operands(case))
    if one.spec.get("preshuffle"):
        assert "B is not shuffled" in one.kernel.refusal(problem)
        problem.b_format = one.b_format()
    if one.spec.get("split_k"):
        problem.split_k = 2
    assert one.kernel.refusal(problem) == ""
    for field, value, words in (("num_d", 4, "D tensors"), ("activation", 6, "tanh"), ("batch", 2, "batch")):
        if (field == "batch" and one.spec.get("batched")) or (field != "batch" and one.spec.get("activation") == "any"):
            continue
        changed = type(problem).from_buffer_copy(
            bytes(ctypes.string_at(ctypes.addressof(problem), ctypes.sizeof(problem)))
        )
        setattr(changed, field, value)
        assert words in one.kernel.refusal(changed)
