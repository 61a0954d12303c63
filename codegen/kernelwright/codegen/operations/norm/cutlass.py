"""Norms on NVIDIA GPUs: the C++ symbols of their kernels, which are our own CUDA code.

The kernels are in dispatcher_cpp/include/kernelwright/norm/gpu, the parts specific to NVIDIA GPUs in cuda/norm.
"""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.norm.gpu import symbols
from kernelwright.codegen.operations.norm.spec import norm_spec
from kernelwright.codegen.trees import launcher_files

SOURCES = launcher_files("cutlass", "norm", "launch")
"""Launcher sources that a library with norm kernels contains."""

TREES = ("cuda_src_norm",)


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """Return the C++ symbols for ``templates/cutlass/norm.hpp.jinja``; the spec must have passed the rules."""
    return {**symbols(norm_spec(kernel), "quantised_fp8"), "wave": arch.wave_size}
