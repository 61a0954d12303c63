"""The library, packaged or compiled here, and a stand-in for the GPU runtimes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gemm.compat.gemm_lib import opened
from kernelwright.dispatch.testdata import mocks

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The packaged library, or one compiled here."""
    return mocks.compat_library("libdispatcher_gemm_lib.so", "gemm", tmp_path_factory.mktemp("gemm_lib"))


@pytest.fixture(scope="session")
def fake_gpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    output = tmp_path_factory.mktemp("fake") / "libcuda.so.1"
    return mocks.compile_shared([*mocks.compilers()[0], "-std=c99", "-O1", str(HERE / "fake_gpu.c")], output)


@pytest.fixture
def library(built: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    for variable in ("KERNELWRIGHT_GEMM_KERNELS", "KERNELWRIGHT_GEMM_TYPES", "KERNELWRIGHT_HIP_LIBRARY"):
        monkeypatch.delenv(variable, raising=False)
    library = opened(built)
    yield library
    library.dispatcher_cleanup()
