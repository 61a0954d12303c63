"""A dispatcher over mock kernels, all fp32.

GEMM in every layout; batches, relu with one D, a product of two Ds row-major; attention with every feature.
"""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from kernelwright.dispatch import Dispatcher, KernelLibrary
from kernelwright.dispatch.testdata import mocks


@cache
def dispatcher() -> Dispatcher:
    """The dispatcher, the same one each time."""
    mocks.native_library()
    folder = Path(tempfile.mkdtemp(prefix="kernelwright-torch-"))
    plain = mocks.write_library(folder / "plain")
    variants = mocks.write_library(folder / "variants", "MOCK_VARIANTS", name="variants", seed="1")
    return Dispatcher([KernelLibrary.load(path) for path in (plain, variants, mocks.attention_library())])
