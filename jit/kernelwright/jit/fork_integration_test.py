"""Importing, building and selecting touch no GPU, and a process that did all of it may fork."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.dispatch.testdata import mocks

pytestmark = pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")

CHILDREN = 64
DRIVERS = ("libcuda.so.1", "libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libnvidia-ml.so.1")
# A driver that leaves a note as soon as anybody loads it.
TRIPWIRE = """
#include <fcntl.h>
#include <stdlib.h>
__attribute__((constructor)) static void loaded(void) { open(getenv("TRIPWIRE"), O_CREAT | O_WRONLY, 0600); }
int cuInit(unsigned flags) { return (int)flags; }
"""
# Prints the exit statuses of children that were not 0.
PROGRAM = """
import os, signal, sys
import numpy as np
import kernelwright.codegen, kernelwright.tile_engine.interface.cli, kernelwright.tile_engine.measuring.worker
from kernelwright.dispatch import Device, Dispatcher, GemmProblem, KernelLibrary
from kernelwright.jit import Registry

cache, mock, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
registry = Registry(Device("cpu", arch="x86_64_v3"), cache=cache)
registry.add({"op": "gemm", "dtype": "fp32", "layout": "rrr", "tile": [12, 48, 32], "warp_tile": [6, 16, 1]})
library = registry.build(2, progress=False)
Registry(Device("cuda:0", arch="sm_90a"), cache=cache).add_set("gemm:essential")
Registry(Device("hip:0", arch="gfx942"), cache=cache).add_set("gemm:essential")
gpu = Dispatcher(KernelLibrary.load(mock), Device("cuda:0", arch="sm_90a"))
problem = GemmProblem(64, 64, 64)
a = np.arange(70 * 30, dtype=np.float32).reshape(70, 30) % 7

def used():
    product = Dispatcher(library).gemm(a, a.T.copy())
    return (product == a @ a.T).all() and gpu.select(problem).kernel and gpu.explain(problem).kernels

assert used()
children = []
for _ in range(count):
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # a child that hangs is found out
        os._exit(0 if used() else 1)
    children.append(child)
print([status for status in (os.waitpid(child, 0)[1] for child in children) if status])
"""


def test_children_of_a_process_that_built_and_selected(tmp_path: Path) -> None:
    mocks.native_library()
    mock = mocks.write_library(tmp_path / "sm_90a", arch="sm_90a", backend="cutlass")
    (tmp_path / "driver.c").write_text(TRIPWIRE)
    drivers = tmp_path / "drivers"
    drivers.mkdir()
    for name in DRIVERS:
        mocks.compile_shared([*mocks.compilers()[0], "-O2", "-std=c11", str(tmp_path / "driver.c")], drivers / name)
    note = tmp_path / "note"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    env = {**kept, "PYTHONPATH": os.pathsep.join(sys.path), "LD_LIBRARY_PATH": str(drivers), "TRIPWIRE": str(note)}
    arguments = (str(tmp_path / "cache"), str(mock), str(CHILDREN))
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], env=env, capture_output=True, text=True, timeout=500
    )
    assert run.returncode == 0 and run.stdout.strip() == "[]", run.stdout + run.stderr
    assert not note.exists()  # nobody has loaded a driver
    control = "import ctypes; ctypes.CDLL('libcuda.so.1')"
    subprocess.run([sys.executable, "-c", control], env=env, check=True, timeout=100)
    assert note.exists()
