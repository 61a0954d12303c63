"""GEMM configurations of CK Tile that compile, link and are wrong: each is shown to be, beside what replaces it.

What a rule refuses is named here; docs/amd_known_bad.md lists them all. Each file takes long to compile: without
KERNELWRIGHT_EVERY=1 there is one for CDNA and one for RDNA.
"""

from __future__ import annotations

import os

import numpy as np
import pytest

from gemm.amd import compiled
from gemm.amd.direct import Product
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.errors import Fault

opt_in = pytest.mark.skipif(not os.environ.get("KERNELWRIGHT_EVERY"), reason="KERNELWRIGHT_EVERY is not set")


def planes(name: str, kernel: str, arch: str, k: int) -> tuple[bool, bool]:
    """Whether the known-bad body and ours are right for one 64x64 tile and that K."""
    product = Product(arch, 64, 64, k, planes=2)
    product.launch(compiled.code_object(name, arch), kernel, tile=(64, 64), block=256)
    return product.right(0), product.right(1)


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("loops", range(1, 10))
def test_v4_by_upstreams_rule_is_wrong_for_exactly_three_loops(loops: int) -> None:
    assert planes("loops_gfx942", "v4", "gfx942", 32 * loops) == (loops != 3, True)


@pytest.mark.parametrize("loops", range(2, 10))
def test_v6_with_a_full_tail_finishes_two_loops_only(loops: int) -> None:
    assert planes("loops_gfx942", "v6", "gfx942", 32 * loops) == (loops == 2, True)


def test_v6_has_no_body_for_a_single_loop() -> None:
    assert planes("loops_gfx942", "v6", "gfx942", 32) == (False, False)


@opt_in
@pytest.mark.parametrize("loops", range(1, 10))
def test_async_by_upstreams_rule_is_wrong_for_exactly_three_loops(loops: int) -> None:
    assert planes("loops_gfx950", "async_early", "gfx950", 64 * loops) == (loops != 3, True)


@opt_in
@pytest.mark.parametrize("loops", range(1, 10))
def test_async_with_a_full_tail_finishes_two_loops_only(loops: int) -> None:
    assert planes("loops_gfx950", "async_full", "gfx950", 64 * loops) == (loops == 2, True)


@opt_in
@pytest.mark.parametrize("loops", (1, 2, 4))
def test_async_leaves_loads_under_way(loops: int) -> None:
    """As upstream has it; gemm_test.py runs what is shipped under the same check."""
    image = compiled.code_object("loops_gfx950", "gfx950")
    with pytest.raises(Fault, match="nobody waited"):
        Product("gfx950", 64, 64, 64 * loops).launch(
            image, "async_early", tile=(64, 64), block=256, checks=Checks(waits=True)
        )


def right(name: str, kernel: str, product: Product, block: int) -> bool:
    """Whether a kernel is right for a product in tiles of 64x64."""
    product.launch(compiled.code_object(name, product.arch), kernel, tile=(64, 64), block=block)
    return product.right()


@pytest.mark.parametrize("loops", (1, 2, 5))
def test_rdna_computes_nothing_in_32x32_warp_tiles(loops: int) -> None:
    for kernel in ("wide", "right"):
        product = Product("gfx1201", 64, 64, 32 * loops)
        assert right("warp_tile_rdna", kernel, product, 128) == (kernel == "right")


@opt_in
def test_fp8_on_gfx1100_is_wrong() -> None:
    assert not right("fp8_gfx1100", "fp8", Product("gfx1100", 64, 64, 64, dtype="fp8"), 128)


@opt_in
@pytest.mark.parametrize("loops", (2, 4, 6))
def test_preshuffle_computes_nonsense_from_a_row_major_b(loops: int) -> None:
    """Whether B was permuted as it is used, as it is stored, or not at all."""
    column = Product("gfx942", 64, 64, 64 * loops)
    by_column, stored = column.b.values.T.copy(), column.b.values.copy()
    column.b.values.T[...] = permuted(by_column)
    column.launch(compiled.code_object("preshuffle_gfx942", "gfx942"), "b_col", tile=(64, 64), block=256)
    column.b.values.T[...] = by_column  # for the reference
    assert column.right()
    for memory in (permuted(by_column), permuted(stored), stored):
        row = Product("gfx942", 64, 64, 64 * loops, layout="rrr")
        row.a.values[...] = column.a.values
        row.b.values[...] = memory.reshape(row.b.values.shape)
        row.launch(compiled.code_object("preshuffle_gfx942", "gfx942"), "b_row", tile=(64, 64), block=256)
        row.b.values[...] = stored
        assert not row.right()


def permuted(matrix: np.ndarray) -> np.ndarray:
    """Upstream's order of B for 16x16x32 warp tiles: what a lane multiplies at a time is contiguous."""
    rows, columns = matrix.shape
    tiles = matrix.reshape(rows // 16, 16, columns // 32, 4, 8)
    return tiles.transpose(0, 2, 3, 1, 4).reshape(rows, columns)
