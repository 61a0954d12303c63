"""An operation of two stages that only this folder knows goes from spec to dispatch, without one edit elsewhere.

docs/adding_an_operation.md walks through these files; page_test.py keeps its excerpts true.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from added_operation.calls import RowNormProblem
from added_operation.operation import FOLDER, TREE_ROOTS, RowNorm
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries, read_tree_roots
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.operation import register, unregister
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.violations import IllegalKernelError
from kernelwright.dispatch import Dispatcher, KernelLibrary
from kernelwright.dispatch.core import native
from kernelwright.dispatch.testdata import mocks

ARCH = "x86_64_v3"


@pytest.fixture(autouse=True)
def row_norm() -> Iterator[None]:
    made = RowNorm()
    register(made)
    yield
    unregister(made.name)


def register_with_dispatcher(folder: Path) -> None:
    """Compile the tables of the operation against libkernelwright.so, and register them."""
    mocks.native_library()
    library = Path(native.library()._name)
    _, cxx = mocks.compilers()
    flags = ["-std=c++20", "-O2", "-fvisibility=hidden", "-fno-exceptions", "-fno-rtti", "-I", str(FOLDER / "include")]
    command = [*cxx, *flags, str(FOLDER / "operation.cpp"), str(library), f"-Wl,-rpath,{library.parent}"]
    output = mocks.compile_shared(command, folder / "librow_norm.so")
    assert ctypes.CDLL(str(output)).row_norm_register() == 0


def built(folder: Path) -> Path:
    """A library of both stages, twice each: the set, and a longer loop that the estimate prefers."""
    roots = {**read_tree_roots(os.environ["KERNELWRIGHT_TREES"]), **TREE_ROOTS}
    specs = [{"op": "row_norm", "stage": stage, "unroll": unroll} for stage in ("square", "sum") for unroll in (8, 16)]
    selections = select("specs", specs, [ARCH], load_archs())
    executor = LocalExecutor(roots, folder / "cache", jobs=2)
    (manifest,) = build_libraries("norms", selections, DEFAULT_TOOLCHAINS, executor, folder / "out")
    return manifest.parent


def test_a_spec_has_a_name_an_identity_and_rules() -> None:
    arch = load_archs()[ARCH]
    kernel = parse_kernel({"op": "row_norm", "stage": "sum"}, arch)
    assert kernel.name == "row_norm_sum_8"
    assert json.loads(kernel.canonical_json)["spec"] == {"op": "row_norm", "stage": "sum", "unroll": 8}
    with pytest.raises(
        IllegalKernelError, match=r"(?s)row_norm\.unroll: unroll = 12: vectors .*nearest legal kernel: unroll = 16"
    ):
        parse_kernel({"op": "row_norm", "stage": "sum", "unroll": 12}, arch)


def test_two_stages_run_from_build_to_dispatch(tmp_path: Path) -> None:
    register_with_dispatcher(tmp_path)
    library = KernelLibrary.load(built(tmp_path))
    assert {kernel.name for kernel in library.kernels} == {
        f"row_norm_{stage}_{unroll}" for stage in ("square", "sum") for unroll in (8, 16)
    }
    dispatcher = Dispatcher([library])
    x = np.random.default_rng(0).standard_normal((37, 1001), np.float32)
    y = np.full(37, np.nan, np.float32)
    plan = dispatcher.plan(RowNormProblem(*x.shape))
    plan(x, y)
    np.testing.assert_allclose(y, (x.astype(np.float64) ** 2).sum(axis=1), rtol=1e-5)
    assert [stage.kernel.name for stage in plan.stages] == ["row_norm_square_16", "row_norm_sum_16"]
    squares = x.size * 4
    assert plan.stages[0].scratch_bytes == squares <= plan.workspace_bytes
    assert dispatcher.plan(RowNormProblem(*x.shape)) is plan
    explained = dispatcher.explain(RowNormProblem(*x.shape))
    assert [stage.chosen.name for stage in explained.stages if stage.chosen] == [s.kernel.name for s in plan.stages]
