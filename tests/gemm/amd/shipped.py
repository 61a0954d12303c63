"""The AMD libraries that are shipped, by architecture: those named in KERNELWRIGHT_ARCHS, or all."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import as_file, files

from kernelwright.dispatch import KernelEntry, KernelLibrary
from kernelwright.simulator.code.object_file import CodeObject, images, read_code_object

ARCHS = tuple(os.environ.get("KERNELWRIGHT_ARCHS", "gfx90a gfx942 gfx950 gfx1100 gfx1201").split())


@cache
def library(arch: str) -> KernelLibrary:
    """The shipped GEMM library."""
    with as_file(files("gemm") / f"{arch}_gemm" / arch) as path:
        return KernelLibrary.load(path)


def named(arch: str, name: str) -> KernelEntry:
    """The one kernel of that library with this name."""
    (kernel,) = (kernel for kernel in library(arch).kernels if kernel.name == name)
    return kernel


@cache
def code_objects(arch: str) -> tuple[tuple[bytes, CodeObject], ...]:
    """Every code object inside that library, as bytes and as the simulator reads it."""
    return tuple((image, read_code_object(image)) for image in images(library(arch).path.read_bytes()))
