"""Every CPU kernel of convolution that tests need: what Pants packages, else built once by the local executor."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from compiling import executor
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.dispatch import ArchMismatchError, Dispatcher, KernelLibrary
from kernelwright.dispatch.testdata import mocks

ARCHS = ("x86_64_v3", "x86_64_v4")


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: pytest.TempPathFactory) -> dict[str, KernelLibrary]:
    """By architecture; those that this machine cannot load are here too."""
    mocks.native_library()
    packaged = Path(__file__).with_name("kernels")
    if packaged.is_dir():
        return {arch: KernelLibrary.load(packaged / arch) for arch in ARCHS}
    builder = executor(jobs=os.cpu_count() or 1)
    selections = select("set", "convolution:tests", list(ARCHS), load_archs())
    out = tmp_path_factory.mktemp("convolution")
    manifests = build_libraries("conv_tests", selections, DEFAULT_TOOLCHAINS, builder, out)
    return {manifest.parent.name: KernelLibrary.load(manifest.parent) for manifest in manifests}


@pytest.fixture(scope="session", params=ARCHS)
def dispatcher(request: pytest.FixtureRequest, libraries: dict[str, KernelLibrary]) -> Iterator[Dispatcher]:
    """A dispatcher of one architecture's kernels."""
    try:
        made = Dispatcher(libraries[request.param])
    except ArchMismatchError as error:
        pytest.skip(str(error))
    yield made
    made.set_num_threads(0)
