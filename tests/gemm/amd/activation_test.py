"""The activations of AMD kernels against float64, element by element, in fp32."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from gemm.amd import compiled
from gemm.correctness.reference import ACTIVATIONS
from kernelwright.simulator.run.launch import Buffer, Simulator

COUNT = 4096
UNIT = 2.0**-24  # half of the distance between 1 and the next number


@pytest.mark.parametrize("arch", ["gfx942", "gfx1201"])
def test_activations_are_within_a_few_roundings(arch: str) -> None:
    rng = np.random.default_rng(3)
    spread = rng.standard_normal(COUNT // 2) * 10.0 ** rng.uniform(-6, 1.5, COUNT // 2)
    x = np.concatenate([np.linspace(-12, 12, COUNT // 2), spread]).astype(np.float32)
    x[:4] = (0.0, -0.0, np.nan, 100.0)
    y = np.zeros((len(ACTIVATIONS), COUNT), np.float32)
    Simulator().launch(
        compiled.code_object("activations", arch),
        "activations",
        grid=(COUNT // 256, 1, 1),
        block=(256, 1, 1),
        arguments=struct.pack("<2QI4x", y.ctypes.data, x.ctypes.data, COUNT),
        buffers=[Buffer(y.ctypes.data, y.nbytes, writable=True), Buffer(x.ctypes.data, x.nbytes, writable=False)],
    )
    for (name, function), actual in zip(ACTIVATIONS.items(), y, strict=True):
        wanted = function(x.astype(np.float64))
        assert np.array_equal(np.isnan(actual), np.isnan(wanted)), name
        # Relative to the result, or to what it would be without the factor that makes it small.
        size = np.maximum(np.abs(wanted), np.minimum(np.abs(x), 1.0) if name != "sigmoid" else 2.0**-100)
        exact = name in ("none", "relu")
        # exp2 of a rounded product: its error grows with the exponent.
        bound = 0 if exact else (8 + 2 * np.minimum(np.abs(x), 90)) * UNIT
        error = np.abs(actual.astype(np.float64) - wanted) / np.where(size == 0, 1, size)
        worst = np.nanargmax(error - bound)
        assert (np.isnan(error) | (error <= bound)).all(), f"{name}({x[worst]}) = {actual[worst]}, not {wanted[worst]}"
