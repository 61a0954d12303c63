"""An AMD convolution kernel compiled where it is used, and executed in the simulator."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from convolution.correctness.reference import convolve
from kernelwright.dispatch import ConvProblem, Device
from kernelwright.dispatch.testdata import mocks
from kernelwright.jit import Registry


@pytest.mark.thorough(instead="tests/convolution/jit/cpu_test.py")
def test_a_kernel_is_compiled_for_a_simulated_gpu(tmp_path: Path) -> None:
    mocks.native_library()
    registry = Registry(Device("sim:gfx942"), cache=tmp_path)
    kernel = registry.add(
        op="convolution", direction="forward", dtype="fp16", layout="nhwgc", tile=[64, 64, 32], wave=[1, 1, 1],
        warp_tile=[32, 32, 16], pipeline="compv1",
    )  # fmt: skip
    problem = ConvProblem("forward", 1, 16, 16, (5, 6), (3, 2), 2, stride=(1, 2), pad_left=1, dtype="fp16")
    assert registry.select(problem) == kernel and registry.missing() == ()
    rng = np.random.default_rng(0)
    x, w = (rng.integers(-3, 4, shape).astype(np.float16) for shape in (problem.x_shape, problem.w_shape))
    y = registry.dispatcher().conv_forward(x, w, stride=(1, 2), padding=1, groups=2)
    assert np.array_equal(y, convolve(problem, x, w))
