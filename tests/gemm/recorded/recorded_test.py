"""A small model is recorded; a library of a few kernels is built for it, and serves what the shipped one does not."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.arch import load
from kernelwright.codegen.inputs import read_json
from kernelwright.codegen.interface.cli import main
from kernelwright.codegen.operation import operation
from kernelwright.codegen.selecting.recorded.choice import choose_kernels
from kernelwright.codegen.selecting.recorded.trace import Wanted, read_wanted
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.dispatch import Device, Dispatcher, KernelLibrary, NoKernelError, record
from kernelwright.dispatch.recording.trace import read_trace

pytestmark = pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")

ARCH = Device("cpu").archs[0]
BUDGET = 3
ROWS = (1, 2, 8, 64)


def shipped_library() -> KernelLibrary:
    folder = os.environ.get("KERNELWRIGHT_KERNELS")
    return KernelLibrary.load_for("cpu", folder or files("gemm") / "cpu_gemm")


Product = Callable[..., Any]


def model(gemm: Product, rows: int) -> tuple[Any, Any]:
    """Two layers: relu(x·W + b) of a column-major x, then a projection. The result, and what it should be."""
    draw = np.random.default_rng(rows)
    xt, w, v = (draw.standard_normal(shape).astype(np.float32) for shape in ((96, rows), (160, 96), (40, 160)))
    x, bias = xt.T, draw.standard_normal(160).astype(np.float32)
    hidden = gemm(x, w.T, ds=(bias,), activation="relu")
    exact = np.maximum(x.astype(np.float64) @ w.T + bias, 0) @ v.T
    return gemm(hidden, v.T), exact


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded on the shipped library, which has no epilogue for a column-major A: NumPy computes those layers."""
    path = tmp_path_factory.mktemp("trace") / "model.json"
    dispatcher = Dispatcher(shipped_library())

    def gemm(a: Any, b: Any, **options: Any) -> Any:
        try:
            return dispatcher.gemm(a, b, **options)
        except NoKernelError:
            return np.maximum(a @ b + options["ds"][0], 0)

    with record(path):
        for rows in ROWS:
            for _ in range(5):
                model(gemm, rows)
    return path


@pytest.fixture(scope="module")
def library(trace: Path, tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    out = tmp_path_factory.mktemp("library")
    chosen = ["--problems", str(trace), "--budget-kernels", str(BUDGET), "--arch", ARCH]
    assert (
        main(["build", *chosen, "--name", "model", "--trees", os.environ["KERNELWRIGHT_TREES"], "--out", str(out)]) == 0
    )
    return KernelLibrary.load(out / ARCH)


def predicted_us(kernels: list[Any], wanted: list[Wanted]) -> list[float | None]:
    """Time of the best kernel for each problem; None where none serves it."""
    time_model = operation("gemm").time_model
    assert time_model is not None
    best_us = []
    for one in wanted:
        times = [time_model.microseconds(kernel, one.asked, load(ARCH)) for kernel in kernels]
        best_us.append(min((us for us in times if us is not None), default=None))
    return best_us


def test_the_library_serves_what_the_shipped_one_does_not(trace: Path, library: KernelLibrary, tmp_path: Path) -> None:
    unserved = {one.problem["m"] for one in read_trace(trace) if one.unserved}
    assert unserved == {*ROWS} - {1}  # the first layer of each size; one row is row-major too
    dispatcher = Dispatcher(library)
    with record(tmp_path / "again.json"):
        for rows in ROWS:
            result, exact = model(dispatcher.gemm, rows)
            np.testing.assert_allclose(result, exact, rtol=1e-4, atol=1e-4)
    assert not any(one.unserved for one in read_trace(tmp_path / "again.json"))
    assert len(library.kernels) <= BUDGET < len(shipped_library().kernels)


def test_it_is_no_slower_by_the_model_where_both_serve(trace: Path, library: KernelLibrary) -> None:
    wanted = read_wanted(read_json(trace))
    arch = load(ARCH)
    ours, theirs = (
        predicted_us([parse_kernel(dict(kernel.spec), arch) for kernel in one.kernels], wanted)
        for one in (library, shipped_library())
    )
    assert None not in ours and theirs.count(None) == 3
    for own, shipped in zip(ours, theirs, strict=True):
        assert shipped is None or own is None or own <= shipped * 1.001


def test_each_kernel_is_there_for_a_problem(trace: Path, library: KernelLibrary) -> None:
    chosen = choose_kernels({"trace": str(trace), "budget_kernels": BUDGET}, load(ARCH))
    assert {kernel.identity for kernel in chosen.kernels} == {kernel.identity for kernel in library.kernels}
    assert all(chosen.purposes.values()) and sum(map(len, chosen.purposes.values())) == len(read_trace(trace))
