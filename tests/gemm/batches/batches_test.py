"""Two kernels that are compiled together are the same to the byte as those that are compiled singly."""

from __future__ import annotations

import pytest

from gemm.batches.both_ways import compile_kernels
from kernelwright.arch import load
from kernelwright.codegen.selecting.sets import expand_set


@pytest.mark.thorough(instead="codegen/kernelwright/codegen/batching/amd_assembly_test.py")
def test_kernels_are_the_same_together_and_singly() -> None:
    kernels = expand_set("gemm:essential", load("gfx90a")).kernels[:2]
    together, singly = (compile_kernels(kernels, way) for way in (True, False))
    assert together == singly and len(together) == 2
    assembly, _, code_object = together[kernels[0].name]
    assert kernels[0].symbol.encode() in assembly and kernels[1].symbol.encode() not in assembly
    assert code_object.startswith(b"\x7fELF")
