"""CPU kernels whose register block has more rows than a vector has lanes, and not whole vectors of them; and those
whose panels of B are wider than what a small matrix computes at once."""

from __future__ import annotations

import pytest

from gemm.correctness.bench import Bench
from gemm.correctness.cases import Case
from kernelwright.dispatch import Device, KernelLibrary
from kernelwright.dispatch.testdata import mocks
from kernelwright.jit import Registry

LANES, MOST_ROWS = 8, 14  # of x86_64_v3, which every processor of a test has
BLOCKS = (("rcr", LANES + 1), ("rrr", 12), ("crr", 12), ("rcr", MOST_ROWS))
PANELS = ((4, 3 * LANES), (2, 4 * LANES))  # rows and columns of register blocks; small matrices compute two vectors


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    mocks.native_library()
    registry = Registry(Device("cpu", arch="x86_64_v3"), cache=tmp_path_factory.mktemp("jit"))
    blocks = [(layout, rows, LANES) for layout, rows in BLOCKS] + [("rcr", *block) for block in PANELS]
    for layout, rows, cols in blocks:
        tiles = {"tile": [2 * rows, 12 * LANES, 96], "warp_tile": [rows, cols, 1]}
        registry.add({"op": "gemm", "dtype": "fp32", "layout": layout, **tiles})
    return registry.build(2)


@pytest.mark.thorough(instead="tests/gemm/kernels/random_test.py")
def test_no_row_is_lost_between_steps_of_k(library: KernelLibrary) -> None:
    assert len(library.kernels) == len(BLOCKS) + len(PANELS)
    for kernel in library.kernels:
        bench = Bench(library, kernel)
        rows = int(kernel.spec["warp_tile"]["m"])
        for m in (rows - 1, rows, rows + 5, 3 * rows):
            for k in (320, 515):  # more than small matrices have, which are read where they lie
                bench.check(bench.fitted(Case(m, 100, k, (5, 3, 1, 0), whole=True)))


@pytest.mark.thorough(instead="tests/gemm/kernels/random_test.py")
def test_small_matrices_read_every_column_of_a_wide_panel(library: KernelLibrary) -> None:
    wide = [kernel for kernel in library.kernels if int(kernel.spec["warp_tile"]["n"]) > 2 * LANES]
    assert len(wide) == len(PANELS)
    for kernel in wide:
        bench = Bench(library, kernel)
        for n in (1, 7, 2 * LANES, 2 * LANES + 1, 3 * LANES, 4 * LANES - 1, 9 * LANES + 3):
            bench.check(bench.fitted(Case(7, n, 19, (5, 3, 1, 0), whole=True)))
