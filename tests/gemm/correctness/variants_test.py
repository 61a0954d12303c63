"""The harness runs batches, D tensors, groups, shuffled B and slices of K to kernels that have them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gemm.correctness.bench import Bench
from gemm.correctness.cases import random_cases
from gemm.correctness.grouped import GroupedBench, random_groups
from kernelwright.dispatch import KernelLibrary
from kernelwright.dispatch.testdata import mocks

COMMON = {"layout": "rrr", "tile": {"m": 32, "n": 32, "k": 32}}
SPECS: dict[str, dict[str, Any]] = {
    "gemm_fp32_rrr_plain": {},
    "gemm_fp32_rrr_batched": {"batched": True},
    "gemm_fp32_rrr_multid_Add_Relu_d1": {"num_d": 1, "activation": "relu", "batched": True},
    "gemm_fp32_rrr_multid_Multiply_d2": {"num_d": 2, "d_op": "multiply"},
    "gemm_fp32_rrr_grouped": {"grouped": True},
    "gemm_fp32_rcr_preshuffle": {"preshuffle": True, "layout": "rcr"},
    "gemm_fp32_rrr_splitk": {"split_k": True},
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    """The mock's variants, whose manifest says what they are."""
    mocks.native_library()
    folder: Path = mocks.write_library(tmp_path_factory.mktemp("variants"), "MOCK_VARIANTS")
    kernels = json.loads((folder / "manifest.json").read_text())["kernels"]
    dtypes = {f"dtype_{x}": "fp32" for x in ("a", "b", "c", "acc")}
    specs = [{**kernel, "spec": {**dtypes, **COMMON, **SPECS[kernel["name"]]}} for kernel in kernels]
    return KernelLibrary.load(mocks.edit_manifest(folder, kernels=specs))


@pytest.mark.parametrize("name", [name for name in SPECS if name != "gemm_fp32_rrr_grouped"])
def test_cases_are_posed_and_right(library: KernelLibrary, name: str) -> None:
    (kernel,) = (kernel for kernel in library.kernels if kernel.name == name)
    bench, run = Bench(library, kernel), []
    for case in random_cases(60, most=70, work=2e4):
        fitted = bench.fitted(replace(case, split_k=min(case.split_k, 3)))
        if bench.refusal(fitted) is None:
            bench.check(fitted, repeats=2)
            run.append(fitted)
    assert len(run) >= (15 if name.endswith("splitk") else 60)
    assert any(case.batch > 1 for case in run) == bool(SPECS[name].get("batched"))
    assert any(case.split_k > 1 for case in run) == name.endswith("splitk")


def test_a_kernel_of_any_epilogue_is_posed_each(tmp_path: Path) -> None:
    """The mock computes relu alone, so other activations must be found wrong."""
    folder = mocks.write_library(tmp_path / "any", "MOCK_VARIANTS", "MOCK_ANY_EPILOGUE")
    (entry,) = (one for one in json.loads((folder / "manifest.json").read_text())["kernels"] if "_Add_" in one["name"])
    dtypes = {f"dtype_{x}": "fp32" for x in ("a", "b", "c", "acc")}
    entry["spec"] = {**dtypes, **COMMON, "activation": "any", "batched": True}
    library = KernelLibrary.load(folder)
    (kernel,) = (kernel for kernel in library.kernels if "_Add_" in kernel.name)
    bench = Bench(library, replace(kernel, spec=entry["spec"]))
    covered: set[tuple[int, str]] = set()
    for case in random_cases(80, most=40, work=2e4):
        fitted = bench.fitted(case)
        assert bench.refusal(fitted) is None and fitted.epilogue is not None
        number, d_op, activation = fitted.epilogue
        covered |= {(number, d_op), (number, activation)}
        if activation in ("none", "relu"):
            bench.check(fitted, repeats=2)
        elif min(case.m, case.n) > 1:
            with pytest.raises(AssertionError, match="epilogue="):
                bench.check(replace(fitted, whole=False), repeats=1)
    assert {(number, d_op) for number in range(5) for d_op in ("add", "multiply")} <= covered
    assert {activation for _, activation in covered} >= {"none", "relu", "gelu", "fast_gelu", "silu", "sigmoid", "tanh"}


def test_groups_are_posed_and_right(library: KernelLibrary) -> None:
    (kernel,) = (kernel for kernel in library.kernels if kernel.spec.get("grouped"))
    bench = GroupedBench(library, kernel)
    for cases in random_groups(10, most=40, work=1e4):
        fitted = bench.groups(cases)
        assert bench.grouped_refusal(fitted) is None
        bench.check_groups(fitted, repeats=2)


def test_a_wrong_group_is_named(library: KernelLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel,) = (kernel for kernel in library.kernels if kernel.spec.get("grouped"))
    bench = GroupedBench(library, kernel)
    (cases,) = (cases for cases in random_groups(5, most=40, work=1e4) if len(cases) == 3)
    launch = bench._launch_groups

    def spoiled(*arguments: Any) -> Any:
        results = launch(*arguments)
        results[2].values[...] += 1
        return results

    monkeypatch.setattr(bench, "_launch_groups", spoiled)
    with pytest.raises(AssertionError, match="group 2 of 3"):
        bench.check_groups(bench.groups(cases))
