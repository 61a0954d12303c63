"""CPU kernels of every way to run a problem: alpha 0 reads neither A nor B, beta 0 no C; sums of integers wrap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import Device, Dispatcher
from kernelwright.dispatch.testdata import mocks
from kernelwright.jit import Registry

TILES = {"tile": [24, 32, 96], "warp_tile": [12, 8, 1]}  # of x86_64_v3, which every processor of a test has
PLAIN = {"op": "gemm", "dtype": "fp32", "layout": "rcr", **TILES}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "persistent": {"persistent": True},
    "split_k": {"split_k": True},
    "batched": {"batched": True},
    "grouped": {"grouped": True},
    "preshuffle": {"preshuffle": True},
    "multi_d": {"num_d": 1, "activation": "relu"},
}
SHAPES = ((40, 40, 40), (1, 300, 200), (300, 1, 200), (200, 200, 300))  # direct, few rows, few columns, packed


@pytest.fixture(scope="module")
def dispatchers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Dispatcher]:
    """By variant, each with its one kernel."""
    mocks.native_library()
    registry = Registry(Device("cpu", arch="x86_64_v3"), cache=tmp_path_factory.mktemp("jit"))
    names = {variant: registry.add(PLAIN | fields).name for variant, fields in VARIANTS.items()}
    int8 = {"op": "gemm", "dtype": "int8", "layout": "rcr", "tile": [24, 32, 96], "warp_tile": [6, 16, 2]}
    names["int8"] = registry.add(int8).name
    library = registry.build(2)
    return {variant: Dispatcher(library, selection=name) for variant, name in names.items()}


def operands(m: int, n: int, k: int, batch: tuple[int, ...] = ()) -> tuple[Any, Any, Any]:
    """A and B of NaN and infinities, and C of small numbers."""
    a, b = np.full((*batch, m, k), np.nan, np.float32), np.full((*batch, n, k), np.inf, np.float32)
    return a, b.swapaxes(-1, -2), np.random.default_rng(m).integers(-9, 9, (*batch, m, n)).astype(np.float32)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: "x".join(map(str, shape)))
def test_alpha_0_reads_neither_a_nor_b(
    dispatchers: dict[str, Dispatcher], variant: str, shape: tuple[int, int, int]
) -> None:
    dispatcher = dispatchers[variant]
    batch = (3,) if variant == "batched" else ()
    a, b, c = operands(*shape, batch)
    for beta in (0.0, 2.0):
        given_c, out = (c if beta else None), np.full_like(c, np.nan)
        if variant == "grouped":
            (d,) = dispatcher.grouped_gemm([a], [b], [out], [given_c] if beta else None, alpha=0.0, beta=beta)
        elif variant == "preshuffle":
            shuffled = dispatcher.shuffle_b(b, m=shape[0])
            d = dispatcher.gemm(a, shuffled, given_c, out, alpha=0.0, beta=beta)
        else:
            ds = [np.ones_like(c)] if variant == "multi_d" else []
            splits = {"split_k": 4} if variant == "split_k" else {}
            epilogue = {"ds": ds, "activation": "relu"} if ds else {}
            d = dispatcher.gemm(a, b, given_c, out, alpha=0.0, beta=beta, **splits, **epilogue)
        wanted = beta * c if beta else np.zeros_like(c)
        np.testing.assert_array_equal(d, np.maximum(wanted + 1, 0) if variant == "multi_d" else wanted)


@pytest.mark.parametrize("shape", [(1, 40), (40, 1), (40, 40), (130, 150)], ids=lambda s: f"{s[0]}x{s[1]}")
def test_sums_of_integers_wrap(dispatchers: dict[str, Dispatcher], shape: tuple[int, int]) -> None:
    (m, n), k = shape, 131_072 + 5  # the first K whose sums pass 2^31 - 1
    a, b = np.full((m, k), -128, np.int8), np.full((n, k), -128, np.int8)
    a[0, :2] = 3
    d = dispatchers["int8"].gemm(a, b.T)
    exact = a.astype(np.int64) @ b[0].astype(np.int64)
    assert exact.min() >= 2**31 and d.dtype == np.int32
    np.testing.assert_array_equal(d, np.repeat(exact.astype(np.int32)[:, None], n, axis=1))
