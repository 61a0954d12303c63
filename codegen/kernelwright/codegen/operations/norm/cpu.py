"""Norms on CPUs: the C++ symbols of their kernels, which are in dispatcher_cpp/include/kernelwright/cpu/norm."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.norm.constraints.common import DTYPES, RESULTS
from kernelwright.codegen.operations.norm.spec import OPS, norm_spec
from kernelwright.codegen.symbols import CPU_DTYPES, part
from kernelwright.codegen.trees import launcher_files

ELEMENTS = part(CPU_DTYPES, *DTYPES)
QUANTISED = {dtype: f"quantised_{name}" for dtype, name in part(CPU_DTYPES, *RESULTS).items()}

SOURCES = launcher_files("cpu", "norm", "launch")
"""Launcher sources that a library with norm kernels contains."""

TREES = ("cpu_norm",)


def context(kernel: Kernel, arch: Arch) -> Mapping[str, object]:
    """Return the C++ symbols for ``templates/cpu/norm.hpp.jinja``; the spec must have passed the rules."""
    spec = norm_spec(kernel)
    return {
        "op": OPS[spec.kind, spec.direction].c_name,
        "element": ELEMENTS[spec.dtype],
        "result": QUANTISED.get(spec.dtype_y) or ELEMENTS[spec.dtype_y],
    }
