"""GEMM as :class:`kernelwright.codegen.operation.Operation` describes an operation."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.folder_operation import FolderOperation
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.complete import SHORTHANDS, complete
from kernelwright.codegen.operations.gemm.estimate import compile_seconds
from kernelwright.codegen.operations.gemm.expand import expand_gemm
from kernelwright.codegen.operations.gemm.generator import GemmGenerator
from kernelwright.codegen.operations.gemm.name import kernel_name
from kernelwright.codegen.operations.gemm.sets import GemmSets
from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.operations.gemm.time_model.model import GemmTimeModel

# Templates by backend and suffix.
_TEMPLATES: Mapping[str, Mapping[str, str]] = {
    "cpu": {".hpp": "templates/cpu/gemm.hpp.jinja"},
    "ck_tile": {".hpp": "templates/ck_tile/gemm.hpp.jinja", ".c": "templates/ck_tile/gemm.c.jinja"},
    "cutlass": {".hpp": "templates/cutlass/gemm.hpp.jinja"},
}
# Suffixes and parts of symbols of device functions that run besides the GEMM itself.
_HELPERS = ("_sum", "kernelwright_prepare")


def _features(spec: GemmSpec, arch: Arch) -> tuple[str, ...]:
    return gemm_section(arch).features(spec.dtype_key, spec.warp_tile.k)


def _expects(kernel: Kernel, arch: Arch) -> Expectation:
    """Expect one device function with matrix instructions; those that add up slices or fill tables run besides it."""
    return Expectation(device_kernels=1, matrix_instructions=True, helpers=_HELPERS)


GEMM = FolderOperation(
    name="gemm",
    title="GEMM",
    package="kernelwright.codegen.operations.gemm",
    spec_type=GemmSpec,
    templates=_TEMPLATES,
    sets=GemmSets(),
    section=gemm_section,
    complete=complete,
    name_of=kernel_name,
    expand=expand_gemm,
    features=_features,
    seconds=compile_seconds,
    expects=_expects,
    shorthands=SHORTHANDS,
    generator=GemmGenerator(),
    time_model=GemmTimeModel(),
    joins=True,
)
"""The operation as the registry lists it."""
