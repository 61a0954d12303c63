"""Dispatchers of the tests of this folder."""

from __future__ import annotations

import os

import pytest

from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries, read_tree_roots
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.dispatch import Dispatcher, KernelLibrary
from kernelwright.dispatch.testdata import mocks


@pytest.fixture(scope="session")
def naive() -> Dispatcher:
    """Naive fp32 kernels of every family and feature: no part of the product, they show what reaches kernels."""
    mocks.native_library()
    return Dispatcher(mocks.attention_library())


@pytest.fixture(scope="session")
def processor(tmp_path_factory: pytest.TempPathFactory) -> Dispatcher:
    """The essential kernels of processors in fp32 and bf16."""
    mocks.native_library()
    executor = LocalExecutor(read_tree_roots(os.environ["KERNELWRIGHT_TREES"]), tmp_path_factory.mktemp("cache"))
    selections = select("set", "fmha_essential", ["x86_64_v3"], load_archs(), "c.dtype in ['fp32', 'bf16']")
    (manifest,) = build_libraries(
        "attention", selections, DEFAULT_TOOLCHAINS, executor, tmp_path_factory.mktemp("kernels")
    )
    return Dispatcher(KernelLibrary.load(manifest.parent))
