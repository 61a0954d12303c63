"""Every shipped plain AMD GEMM kernel is run in the simulator, through the dispatcher and the library's launcher.

Sizes have tails in M, N and K and 1 to 9 K loops, rows have gaps, memory around results is guarded. Sums of small
integers must be bit-exact; random numbers must keep the rounding bound of their sum.
"""

from __future__ import annotations

from functools import cache

import pytest

from gemm.amd.shipped import ARCHS, library, named
from gemm.amd.simulated import Bench, Case, cases_of
from gemm.amd.variants import is_plain
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.run import device

PLAIN = [(arch, kernel) for arch in ARCHS for kernel in library(arch).kernels if is_plain(kernel)]
KERNELS = [(arch, kernel.name) for arch, kernel in PLAIN]
CASES = [(arch, kernel.name, case) for arch, kernel in PLAIN for case in cases_of(kernel)]


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


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("arch", "kernel"), KERNELS)
def test_no_check_finds_anything_in_any_order_of_waves(arch: str, kernel: str) -> None:
    tried = [case for case in cases_of(bench(arch, kernel).kernel) if not case.normal][3]
    for seed in (None, 1, 2):
        with device.configure(checks=Checks(uninitialised=True, races=True, waits=True), seed=seed):
            bench(arch, kernel).run(tried)


@pytest.mark.parametrize(("arch", "kernel"), [each for each in KERNELS if bench(*each).spec.get("split_k")])
def test_slices_of_k_are_summed_in_a_fixed_order(arch: str, kernel: str) -> None:
    tile = bench(arch, kernel).spec["tile"]
    case = Case(tile["m"], tile["n"], 4 * tile["k"], split_k=3, normal=True)
    plain = bench(arch, kernel).run(case)
    with device.configure(seed=7):
        assert bench(arch, kernel).run(case).tobytes() == plain.tobytes()
