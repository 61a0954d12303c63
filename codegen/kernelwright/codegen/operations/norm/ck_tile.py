"""Norms on AMD GPUs: the C++ symbols of their kernels, which are our own HIP code, and the values of their descriptors.

The kernels are in dispatcher_cpp/include/kernelwright/norm/gpu, the parts specific to AMD GPUs in hip/norm.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.norm.gpu import symbols
from kernelwright.codegen.operations.norm.spec import norm_spec
from kernelwright.codegen.trees import launcher_files
from kernelwright.problems.norm.description import LARGEST, LARGEST_FNUZ

SOURCES = launcher_files("ck_tile", "norm", "launch")
"""Launcher sources that a library with norm kernels contains."""

TREES = ("hip_norm", "norm")


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """Return the symbols of the templates below ``templates/ck_tile``; the spec must have passed the rules."""
    largest = LARGEST_FNUZ if arch.fp8_format == "fnuz" else LARGEST[DType.FP8]
    norm_symbols = symbols(norm_spec(kernel), f"quantised_fp8<{largest:.0f}>")
    return {**norm_symbols, "wave": arch.wave_size, "function": f"{kernel.symbol}_norm", "sum": f"{kernel.symbol}_sum"}
