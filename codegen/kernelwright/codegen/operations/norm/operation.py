"""Norms as :class:`kernelwright.codegen.operation.Operation` describes an operation."""

from __future__ import annotations

from kernelwright.codegen.folder_operation import FolderOperation
from kernelwright.codegen.operations.norm.complete import complete
from kernelwright.codegen.operations.norm.name import kernel_name
from kernelwright.codegen.operations.norm.sets import NormSets
from kernelwright.codegen.operations.norm.spec import NormSpec

NORM = FolderOperation(
    name="norm",
    title="norm",
    package="kernelwright.codegen.operations.norm",
    spec_type=NormSpec,
    templates={"cpu": {".hpp": "templates/cpu/norm.hpp.jinja"}},
    sets=NormSets(),
    complete=complete,
    name_of=kernel_name,
)
"""The operation in the registry."""
