"""Problems with numbers to 2^62 in Python: made, shown, and planned with CPU kernels, each in bounded time.

``KERNELWRIGHT_BOUNDS`` says how many problems of each operation are tried; CI tries a few.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from bounds import drawn
from bounds.children import run_each
from compiling import executor
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.dispatch import (
    AppendProblem,
    AttentionProblem,
    ConvProblem,
    Dispatcher,
    GemmProblem,
    GroupedGemmProblem,
    KernelLibrary,
    NoKernelError,
    ProblemError,
)
from kernelwright.dispatch.testdata import mocks

COUNT = int(os.environ.get("KERNELWRIGHT_BOUNDS", "300"))
SECONDS = 2.0
PROBLEMS: dict[str, tuple[Callable[..., Any], Callable[[int], drawn.Fields]]] = {
    "gemm": (GemmProblem, drawn.gemm),
    "grouped": (GroupedGemmProblem, drawn.grouped),
    "convolution": (ConvProblem, drawn.convolution),
    "attention": (AttentionProblem, drawn.attention),
    "append": (AppendProblem, drawn.append),
}


@pytest.fixture(scope="module", autouse=True)
def native() -> None:
    """The C library, which checks problems."""
    mocks.native_library()


@pytest.fixture(scope="module")
def dispatcher(tmp_path_factory: pytest.TempPathFactory) -> Dispatcher:
    """A dispatcher of an fp32 kernel of each direction of convolution, on which plans depend most, and two of GEMM."""
    builder = executor(jobs=os.cpu_count() or 1)
    chosen = {
        "convolution:tests": "c.dtype == 'fp32' and not c.bias and not c.residual and c.activation == 'none'",
        "gemm:essential": "c.dtype_a == 'fp32' and c.layout == 'rcr'",
    }
    libraries = []
    for set_name, kept in chosen.items():
        selections, name = select("set", set_name, ["x86_64_v3"], load_archs(), kept), set_name.partition(":")[0]
        (manifest,) = build_libraries(
            name, selections, DEFAULT_TOOLCHAINS, builder, tmp_path_factory.mktemp("libraries") / name
        )
        libraries.append(KernelLibrary.load(manifest.parent))
    return Dispatcher(libraries)


def check(function: Callable[[int], object], seconds: float = SECONDS) -> None:
    report = run_each(function, range(COUNT), seconds)
    assert not report.failures, "\n".join(report.failures)
    assert report.tried == COUNT


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_are_made_and_shown_in_bounded_time(name: str) -> None:
    make, draw = PROBLEMS[name]

    def show(seed: int) -> None:
        try:
            problem = make(**draw(seed))
        except ProblemError:
            return
        assert str(problem) and repr(problem) and problem == problem and hash(problem) == hash(problem)
        for field in ("flops", "bytes"):
            assert getattr(problem, field, 0) >= 0

    check(show)


@pytest.mark.parametrize("name", PROBLEMS)
def test_problems_are_planned_in_bounded_time(name: str, dispatcher: Dispatcher) -> None:
    make, draw = PROBLEMS[name]

    def plan(seed: int) -> None:
        try:
            problem = make(**draw(seed))
            dispatcher.explain(problem)
            dispatcher.plan(problem)
        except (ProblemError, NoKernelError):
            return

    check(plan)


@pytest.mark.parametrize("power", [11, 13, 20, 40, 61])
def test_backward_data_is_planned_whatever_its_stride(power: int, dispatcher: Dispatcher) -> None:
    problem = ConvProblem("backward_data", 2, 8, 8, (9, 10), (3, 2), stride=(1, 2**power))
    report = run_each(lambda _: dispatcher.plan(problem), range(1), SECONDS)
    assert not report.failures and report.tried == 1


def test_points_that_no_filter_point_meets_are_zero(dispatcher: Dispatcher) -> None:
    rng = np.random.default_rng(0)
    dy = rng.integers(-3, 4, (2, 8, 1, 8)).astype(np.float32)
    w = rng.integers(-3, 4, (8, 2, 2, 8)).astype(np.float32)
    out = np.full((2, 9, 10, 8), 7, np.float32)
    dispatcher.conv_backward_data(dy, w, (9, 10), out, stride=(1, 2**40))
    wanted = np.zeros_like(out)
    for h in range(8):
        for tap in np.ndindex(2, 2):
            wanted[:, h + tap[0], tap[1]] += dy[:, h, 0] @ w[:, tap[0], tap[1]]
    assert np.array_equal(out, wanted)
