"""The library of familiar functions, packaged or compiled here, and a few CPU kernels for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compiling import executor
from convolution.compat.client import opened
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.dispatch.testdata import mocks

FEW = (
    "c.layout == 'ndhwgc' and not c.bias and c.activation == 'none' "
    "and (c.dtype == 'fp32' or c.dtype == 'bf16' and c.direction == 'forward')"
)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged library, or one compiled here."""
    return mocks.compat_library("libdispatcher_conv_lib.so", "convolution", tmp_path_factory.mktemp("conv_lib"))


@pytest.fixture(scope="session")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a library with every direction in fp32, and forward in bf16."""
    selections = select("set", "convolution:essential", ["x86_64_v3"], load_archs(), FEW)
    (manifest,) = build_libraries("few", selections, DEFAULT_TOOLCHAINS, executor(), tmp_path_factory.mktemp("kernels"))
    return manifest.parent


@pytest.fixture
def library(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for variable in ("KERNELWRIGHT_CONV_KERNELS", "KERNELWRIGHT_CONV_DTYPE", "KERNELWRIGHT_HIP_LIBRARY"):
        monkeypatch.delenv(variable, raising=False)
    library = opened(built)
    yield library
    library.conv_dispatcher_cleanup()
