"""AMD kernels of norms run in the simulator, through the dispatcher and the library's launcher.

Results are held to float64; memory around operands is guarded, and no check for races, missing waits and uninitialised
values may find anything.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import pytest

from kernelwright.arch import load
from kernelwright.dispatch import Dispatcher
from kernelwright.dispatch.operations.norm import NormProblem
from kernelwright.dispatch.testdata import mocks
from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.run import device
from norm.amd.built import ARCHS, DTYPES, library, results
from norm.gpu_cases import Simulated, check

KINDS = ("rms", "layer")
CHECKS = Checks(uninitialised=True, races=True, waits=True)
# Rows, columns, elements by which operands miss an aligned address, and gaps between rows: vectors and rows of threads
# that end within a row, rows longer than what registers hold, single elements.
SHAPES = ((3, 200, 0, 0), (5, 33, 1, 3), (1, 1, 0, 0), (2, 1500, 0, 8), (2, 4200, 0, 0), (9, 17, 0, 15))
KEPT = SHAPES[:2]


@cache
def dispatcher(arch: str, kind: str) -> Dispatcher:
    mocks.native_library()
    return Dispatcher([library(arch, kind)], f"sim:{arch}")


def problem(kind: str, rows: int, columns: int, gap: int, **fields: Any) -> NormProblem:
    """One with a bias where the kind has it, and a gap behind the rows of all operands."""
    names = ["stride_x", "stride_y"]
    if fields.get("residual"):
        names += ["stride_residual"] + ["stride_sum"] * (not fields.get("backward"))
    names += ["stride_dy"] * bool(fields.get("backward"))
    strides = {name: columns + gap for name in names}
    return NormProblem(kind, rows, columns, bias=kind == "layer", **strides, **fields)


def forward_cases(arch: str) -> list[tuple[str, str, str]]:
    return [(kind, dtype, result) for kind in KINDS for dtype in DTYPES for result in ("", *results(arch))]


# One of CDNA and one of RDNA; KERNELWRIGHT_EVERY=1 takes all, in the better part of an hour.
TRIED = [arch for arch in ARCHS if os.environ.get("KERNELWRIGHT_EVERY") or arch in ("gfx942", "gfx1201")]
ALL = [(arch, *case) for arch in TRIED for case in forward_cases(arch)]
BACKWARD = [(arch, kind, dtype) for arch in TRIED for kind in KINDS for dtype in DTYPES]


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("arch", "kind", "dtype", "result"), ALL)
def test_norms_of_every_type(arch: str, kind: str, dtype: str, result: str) -> None:
    fnuz = load(arch).fp8_format == "fnuz"
    for seed, (rows, columns, shift, gap) in enumerate(SHAPES):
        drawn = problem(kind, rows, columns, gap, dtype=dtype, dtype_y=result, residual=seed % 2 == 1)
        with device.configure(checks=CHECKS, seed=seed):
            check(dispatcher(arch, kind), drawn, seed, Simulated(), fnuz=fnuz, shift=shift)


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("arch", "kind", "dtype"), BACKWARD)
def test_gradients_of_every_type(arch: str, kind: str, dtype: str) -> None:
    for seed, (rows, columns, shift, gap) in enumerate(SHAPES):
        drawn = problem(kind, rows, columns, gap, dtype=dtype, backward=True, residual=seed % 2 == 1)
        with device.configure(checks=CHECKS, seed=seed):
            check(dispatcher(arch, kind), drawn, seed, Simulated(), shift=shift)


@pytest.mark.thorough(instead="test_norms_of_every_type")
@pytest.mark.parametrize("arch", TRIED)
def test_weights_may_be_wide_or_absent(arch: str) -> None:
    for seed, fields in enumerate(({"dtype_w": "fp32"}, {"weight": False})):
        for backward in (False, True):
            drawn = problem("layer", 5, 75, 0, dtype="bf16", backward=backward, **fields)
            check(dispatcher(arch, "layer"), drawn, seed, Simulated())
    bare = NormProblem("rms", 3, 40, dtype="fp16", weight=False, backward=True)
    check(dispatcher(arch, "rms"), bare, 2, Simulated())


@pytest.mark.thorough(instead="test_gradients_of_every_type")
@pytest.mark.parametrize("arch", TRIED)
def test_many_rows_are_added_up_in_slices_with_the_same_bits(arch: str) -> None:
    drawn = problem("layer", 700, 24, 0, dtype="bf16", backward=True)
    check(dispatcher(arch, "layer"), drawn, 0, Simulated())
    rng = np.random.default_rng(0)
    x, dy = rng.standard_normal((2, 700, 24), np.float32)
    runs = []
    for seed in (1, 2):
        with device.configure(seed=seed):
            runs.append(dispatcher(arch, "layer").layer_norm_backward(dy, x, np.ones(24, np.float32)))
    assert all(np.array_equal(*pair) for pair in zip(*runs, strict=True))


@pytest.mark.thorough(instead="test_norms_of_every_type")
@pytest.mark.parametrize("arch", TRIED)
def test_rows_that_are_not_finite_have_no_scale_and_no_rows_write_zeros(arch: str) -> None:
    x = np.ones((3, 50), np.float32)
    x[1, 49], x[2] = np.inf, 0
    y, scales = dispatcher(arch, "layer").layer_norm(x, dtype="int8")
    assert np.isnan(scales).tolist() == [False, True, False] and scales[2] == 0 and not y.any()
    none = np.empty((0, 9), np.float32)
    _, dweight = dispatcher(arch, "rms").rms_norm_backward(none, none, np.ones(9, np.float32))
    assert dweight.shape == (9,) and not dweight.any()


def test_a_result_may_be_the_input() -> None:
    x = np.random.default_rng(0).standard_normal((4, 77)).astype(np.float16)
    exact = dispatcher("gfx90a", "rms").rms_norm(x)
    assert dispatcher("gfx90a", "rms").rms_norm(x, None, x) is x and np.array_equal(x, exact)
