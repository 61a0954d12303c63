"""The extras of the kernelwright wheel that compile at run time: pip into a bare environment, then a build.

Downloads toolchains of hundreds of megabytes unless pip has them: ``PYTHONPATH=tests python -m pytest -m slow
tests/downstream/extras_test.py``. No GPU is needed: kernels for absent ones are built, and their launches refused.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from downstream.conftest import packaged, run, succeed

pytestmark = pytest.mark.slow

# Device, how many kernels of the set remain, and what is said of the library.
BUILD = """
import sys
from kernelwright.dispatch import Device
from kernelwright.jit import Registry

device, arch, kernel = sys.argv[1:]
registry = Registry(Device(device, arch=arch), cache="cache")
registry.add_set("gemm:essential", filter=kernel)
library = registry.build(max_workers=1)
assert registry.missing() == () and len(library.kernels) == 1
print(library, library.kernels[0].resources)
"""
RUN = """
import numpy as np
from kernelwright.dispatch import Device
from kernelwright.jit import Registry

registry = Registry(Device({device!r}, arch={arch!r}), cache="cache")
registry.add_set("gemm:essential", filter={kernel!r})
a, b = np.ones((256, 64), np.{dtype}), np.ones((64, 128), np.{dtype})
d = registry.dispatcher().gemm(a, np.asfortranarray(b))
assert (d == 64).all()
"""
PLAIN = "c.variant == 'standard' and c.layout == 'rcr' and c.dtype == '{}'"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return packaged(tmp_path_factory.mktemp("wheel"), "packages:kernelwright")


def installed(wheel: Path, folder: Path, *extras: str) -> Path:
    """The Python of a new environment with the wheel, some extras and what they need out of the index."""
    succeed(sys.executable, "-m", "venv", folder / "venv")
    python = folder / "venv/bin/python"
    command = ("-m", "pip", "--disable-pip-version-check", "install", "-q", "--find-links", wheel)
    succeed(python, *command, f"kernelwright[{','.join(extras)}]")
    succeed(python, "-m", "pip", "--disable-pip-version-check", "check")
    return python


def bare() -> dict[str, str]:
    """What a shell has that nobody has set up: no PATH with compilers, no settings of ours."""
    return {"HOME": os.environ["HOME"], "PATH": "/nonexistent"}


def test_jit_compiles_for_the_processor_at_hand(wheel: Path, tmp_path: Path) -> None:
    python = installed(wheel, tmp_path, "jit")
    kernel = PLAIN.format("fp32") + " and c.tile_n == 4096"
    where = {"device": "cpu", "arch": "x86_64_v3", "kernel": kernel, "dtype": "float32"}
    succeed(python, "-c", RUN.format(**where), cwd=tmp_path, env=bare())
    command = (
        python.with_name("kernelwright"),
        "jit",
        "--arch",
        "x86_64_v3",
        "--set",
        "gemm:essential",
        "--filter",
        kernel,
    )
    library = succeed(*command, "--cache", "cache", cwd=tmp_path, env={**bare(), "KERNELWRIGHT_JIT": "off"}).strip()
    assert (tmp_path / library).is_file()


def test_jit_amd_compiles_and_the_simulator_executes(wheel: Path, tmp_path: Path) -> None:
    python = installed(wheel, tmp_path, "jit-amd", "simulator")
    kernel = PLAIN.format("fp16") + " and c.tile_m == 128 and c.tile_n == 128"
    where = {"device": "sim:gfx942", "arch": "gfx942", "kernel": kernel, "dtype": "float16"}
    succeed(python, "-c", RUN.format(**where), cwd=tmp_path, env=bare())


def test_jit_nvidia_compiles_and_an_absent_gpu_is_named(wheel: Path, tmp_path: Path) -> None:
    python = installed(wheel, tmp_path, "jit-nvidia")
    kernel = PLAIN.format("fp16") + " and c.tile_m == 128 and c.tile_n == 256"
    built = succeed(python, "-c", BUILD, "cuda:0", "sm_90a", kernel, cwd=tmp_path, env=bare())
    assert built.startswith("jit for sm_90a: 1 kernel {") and "'matrix_instructions': " in built
    if Path("/dev/nvidia0").exists():
        pytest.skip("this machine has a GPU: tests/gpu asks it")
    refused = run(python, "-c", "from kernelwright.jit import Registry; Registry('cuda:0')", cwd=tmp_path, env=bare())
    assert "DeviceError: cuda:0: the CUDA driver cannot be loaded: libcuda.so.1" in refused.stderr
    info = succeed(python.with_name("kernelwright"), "info", tmp_path / "cache/libraries", env=bare())
    assert "jit for sm_90a: 1 kernel" in info
