"""Every instruction of every shipped AMD code object can be executed."""

from __future__ import annotations

import pytest

from gemm.amd.shipped import ARCHS, code_objects, library
from kernelwright.simulator.tools.coverage import coverage, instructions_of


@pytest.mark.parametrize("arch", ARCHS)
def test_every_static_instruction_has_semantics(arch: str) -> None:
    images = code_objects(arch)
    assert len(images) == len(library(arch).kernels)
    for image, code in images:
        assert code.target.name == arch
        assert sum(1 for _ in instructions_of(code)) > 500
        assert coverage(image) == {}
