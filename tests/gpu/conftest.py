"""GPU tests need a built sm_90a library ($KERNELWRIGHT_GPU_LIBRARY), torch and a device; elsewhere they are skipped."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from places import CURRENT, DEVICE, ORDINAL  # noqa: E402
from raw_abi import Kernel, Library  # noqa: E402

os.environ.setdefault("KERNELWRIGHT_STRICT", "on")  # operators run kernels, never torch's own operators

LIBRARY = Path(os.environ.get("KERNELWRIGHT_GPU_LIBRARY", HERE.parents[1] / ".gpu" / "sm_90a" / "libgemm.so"))

# Marks of modules that run through the Python dispatcher.
NEEDS_DISPATCHER = [
    pytest.mark.usefixtures("gpu"),
    pytest.mark.skipif(
        not (LIBRARY.parent / "manifest.json").exists()
        or not Path(os.environ.get("KERNELWRIGHT_LIBRARY", "/-")).exists(),
        reason="needs manifest.json beside the library and libkernelwright.so: run tests/gpu/run with both arguments",
    ),
]


@pytest.fixture(scope="session")
def library() -> Library:
    if not LIBRARY.exists():
        pytest.skip(f"{LIBRARY} is not built: run tests/gpu/run")
    return Library(LIBRARY)


@pytest.fixture(scope="session")
def gpu() -> None:
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available() or torch.cuda.get_device_capability(ORDINAL) != (9, 0):
        pytest.skip(f"{DEVICE} has no compute capability of 9.0")
    torch.cuda.set_device(CURRENT)


@pytest.fixture(autouse=True)
def current_device(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test may leave another device current than it found."""
    yield
    if "gpu" in request.fixturenames:
        import torch

        assert torch.cuda.current_device() == CURRENT


def plain(kernel: Kernel) -> bool:
    """Is it no grouped kernel, has it neither D tensors nor an activation, and needs it no workspace?

    random_gpu_test has the others.
    """
    traits = kernel.traits
    return kernel.descriptor.op == 1 and not (traits.num_d or traits.activation or traits.stream_k)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kernel" in metafunc.fixturenames:
        kernels: list[Kernel] = [kernel for kernel in Library(LIBRARY) if plain(kernel)] if LIBRARY.exists() else []
        metafunc.parametrize("kernel", kernels, ids=lambda kernel: kernel.name)
