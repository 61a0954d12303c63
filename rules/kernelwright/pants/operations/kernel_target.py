"""What the kernel targets of all operations share."""

from __future__ import annotations

from typing import Any, ClassVar

from kernelwright.pants.operations.fields import SpecField, spec_fields
from kernelwright.pants.targets.kernel_fields import KernelArchField, LimitsField
from pants.engine.target import COMMON_TARGET_FIELDS, Field, Target


class KernelTarget(Target):
    """One kernel of the operation ``op``. Subclasses state ``op`` and ``core_fields = kernel_fields(op)``."""

    op: ClassVar[str]

    def spec(self) -> dict[str, Any]:
        """The spec as the generator's requests hold it: the operation and the fields that the BUILD file states."""
        stated = {field.alias: field.to_spec() for field in self.field_values.values() if isinstance(field, SpecField)}
        return {"op": self.op, **{name: value for name, value in stated.items() if value is not None}}


def kernel_fields(op: str) -> tuple[type[Field], ...]:
    """The fields of a target whose spec is one of the operation ``op``."""
    return (*COMMON_TARGET_FIELDS, KernelArchField, *spec_fields(op), LimitsField)
