"""Processes that fork while four threads make first calls with torch's tensors, on shipped CPU kernels."""

from __future__ import annotations

import os

import pytest

from kernelwright.dispatch import KernelLibrary
from kernelwright.dispatch.testdata import fork_first_calls
from kernelwright.dispatch.testdata.fresh import output

CHILDREN = 60
RUNS = 20 if os.environ.get("KERNELWRIGHT_EVERY") else 1  # of about 5 s


@pytest.mark.parametrize("kind", ["torch", "tensors", "later"])  # see fork_first_calls
@pytest.mark.parametrize("run", range(RUNS))
def test_children_of_first_calls(run: int, kind: str) -> None:
    library = KernelLibrary.load_for("cpu", os.environ["KERNELWRIGHT_KERNELS"])
    assert output(fork_first_calls, str(library.path.parent), str(CHILDREN), kind) == "[]"
