"""Norms as :class:`kernelwright.codegen.operation.Operation` describes an operation."""

from __future__ import annotations

from kernelwright.codegen.folder_operation import FolderOperation
from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.operations.norm.complete import complete
from kernelwright.codegen.operations.norm.name import kernel_name
from kernelwright.codegen.operations.norm.sets import NormSets
from kernelwright.codegen.operations.norm.spec import NormSpec

_HELPERS = ("_sum", "4norm6finish")
"""Parts of symbols of device functions that add up gradients' partial sums: on AMD GPUs, on NVIDIA GPUs."""

NORM = FolderOperation(
    name="norm",
    title="norm",
    package="kernelwright.codegen.operations.norm",
    spec_type=NormSpec,
    templates={
        "cpu": {".hpp": "templates/cpu/norm.hpp.jinja"},
        "ck_tile": {".hpp": "templates/ck_tile/norm.hpp.jinja", ".c": "templates/ck_tile/norm.c.jinja"},
        "cutlass": {".hpp": "templates/cutlass/norm.hpp.jinja"},
    },
    sets=NormSets(),
    complete=complete,
    name_of=kernel_name,
    expects=lambda kernel, arch: Expectation(helpers=_HELPERS),
)
"""The operation as the registry lists it."""
