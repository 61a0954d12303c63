"""Every CPU kernel of the shipped library on random problems, 1,000 in all.

Small whole numbers must come out exact; errors of others may be twice those of a reference run in the same precision.
Memory around results and workspace is poisoned and guarded, three runs of each problem must agree bit for bit.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

import pytest

from gemm.correctness.bench import Bench
from gemm.correctness.cases import Case, random_cases
from gemm.correctness.grouped import GroupedBench, random_groups
from kernelwright.dispatch import KernelEntry, KernelLibrary

CASES, PARTS = 1000, 10


@cache
def benches() -> tuple[list[Bench], list[GroupedBench]]:
    """Benches of single and of grouped kernels that this processor has the instructions for: not every one has AMX."""
    library = KernelLibrary.load_for("cpu", files("gemm") / "cpu_gemm")
    one = Case(1, 1, 1)
    plain = [Bench(library, kernel) for kernel in library.kernels if not {"grouped", "preshuffle"} & of(kernel)]
    missing = {
        bench.kernel.features for bench in plain if bench.ranked(bench.problem(bench.fitted(one))).lacks_features
    }
    served = [kernel for kernel in library.kernels if kernel.features not in missing]
    return (
        [Bench(library, kernel) for kernel in served if "grouped" not in of(kernel)],
        [GroupedBench(library, kernel) for kernel in served if "grouped" in of(kernel)],
    )


def of(kernel: KernelEntry) -> set[str]:
    """The variants of a kernel."""
    return {name for name in ("grouped", "preshuffle") if kernel.spec.get(name)}


@pytest.mark.parametrize("part", range(PARTS))
def test_random_problems(part: int) -> None:
    single, _ = benches()
    served: set[str] = set()
    for number, case in enumerate(random_cases(CASES // PARTS, seed=part, work=2e6)):
        bench = single[(part * CASES // PARTS + number) % len(single)]
        fitted = bench.fitted(case)
        reason = bench.refusal(fitted)
        assert reason is None, f"{bench.kernel.name} refuses {fitted}: {reason}"
        bench.check(fitted)
        served.add(bench.kernel.identity)
    assert len(served) == min(len(single), CASES // PARTS)


def test_random_groups() -> None:
    for bench in benches()[1]:
        for cases in random_groups(40, work=5e5):
            fitted = bench.groups(cases)
            assert bench.grouped_refusal(fitted) is None
            bench.check_groups(fitted)


def test_a_row_and_a_column_of_every_kernel_are_exact() -> None:
    for bench in benches()[0]:
        for m, n, k in ((1, 257, 509), (257, 1, 509), (1, 1, 1021)):
            bench.check(bench.fitted(Case(m, n, k, (5, 3, 1, 0), whole=True)))
