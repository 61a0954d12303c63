"""A test that depends on a kernel library as on any resource: ``dependencies=[":cpu_gemm"]`` in the BUILD file."""

from __future__ import annotations

from importlib.resources import files

import ml_dtypes
import numpy as np
import pytest

from kernelwright.dispatch import Dispatcher, KernelLibrary
from quickstart.quickstart import PROBLEMS


def test_every_problem_of_the_program_has_a_kernel() -> None:
    dispatcher = Dispatcher([KernelLibrary.load_for("cpu", files("quickstart") / "cpu_gemm")])
    assert all(dispatcher.plan(problem) for problem in PROBLEMS)


@pytest.mark.parametrize("kind", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_the_packaged_library_multiplies(kind: type) -> None:
    library = KernelLibrary.load_for("cpu", files("quickstart") / "cpu_gemm")
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, shape).astype(kind) for shape in ((65, 40), (40, 33)))
    c = Dispatcher([library]).gemm(a, np.asfortranarray(b))  # column-major, as the program has it
    assert np.array_equal(c.astype(np.float64), a.astype(np.float64) @ b.astype(np.float64))
