"""A launch of a shipped kernel without all of its arguments is refused."""

from __future__ import annotations

import pytest

from gemm.amd.shipped import ARCHS, code_objects
from kernelwright.simulator.errors import SimulatorError
from kernelwright.simulator.run.launch import Simulator


@pytest.mark.parametrize("arch", ARCHS)
def test_missing_arguments_are_refused(arch: str) -> None:
    for image, code in code_objects(arch):
        for name, kernel in code.kernels.items():
            needed = code.arguments[name].explicit_bytes
            assert 100 < needed <= kernel.kernarg_bytes
            for given in (0, 64, 100, needed - 1):
                with pytest.raises(SimulatorError, match=rf"takes {needed} bytes of arguments.*; {given} given"):
                    Simulator().launch(
                        image, name, grid=(1, 1, 1), block=(64, 1, 1), arguments=bytes(given), buffers=[]
                    )
