"""CPU kernels whose register block has more rows than a vector has lanes, and not whole vectors of them."""

from __future__ import annotations

import pytest

from gemm.correctness.bench import Bench
from gemm.correctness.cases import Case
from kernelwright.dispatch import Device, KernelLibrary
from kernelwright.dispatch.testdata import mocks
from kernelwright.jit import Registry

LANES, MOST_ROWS = 8, 14  # of x86_64_v3, which every processor of a test has
BLOCKS = (("rcr", LANES + 1), ("rrr", 12), ("crr", 12), ("rcr", MOST_ROWS))


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    mocks.native_library()
    registry = Registry(Device("cpu", arch="x86_64_v3"), cache=tmp_path_factory.mktemp("jit"))
    for layout, rows in BLOCKS:
        tiles = {"tile": [2 * rows, 4 * LANES, 96], "warp_tile": [rows, LANES, 1]}
        registry.add({"op": "gemm", "dtype": "fp32", "layout": layout, **tiles})
    return registry.build(2)


@pytest.mark.thorough(instead="tests/gemm/kernels/random_test.py")
def test_no_row_is_lost_between_steps_of_k(library: KernelLibrary) -> None:
    assert len(library.kernels) == len(BLOCKS)
    for kernel in library.kernels:
        bench = Bench(library, kernel)
        rows = int(kernel.spec["warp_tile"]["m"])
        for m in (rows - 1, rows, rows + 5, 3 * rows):
            for k in (320, 515):  # more than small matrices have, which are read where they lie
                bench.check(bench.fitted(Case(m, 100, k, (5, 3, 1, 0), whole=True)))
