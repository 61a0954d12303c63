"""Common parts of the kernel targets of all operations, and of single kernels and kernel sets."""

from __future__ import annotations

from typing import Any, ClassVar, Mapping, Optional

from kernelwright.pants.targets.proposing import ProposingTarget
from kernelwright.pants.targets.spec_fields import SpecField, spec_fields
from pants.engine.addresses import Address
from pants.engine.target import COMMON_TARGET_FIELDS, Field, InvalidFieldTypeException, StringField
from pants.util.frozendict import FrozenDict
from pants.util.strutil import help_text


class KernelArchField(StringField):
    alias = "arch"
    required = True
    help = help_text(
        """
        The architecture that the kernel is built for, e.g. `"gfx942"`, `"sm_90a"` or `"x86_64_v4"`. Use
        `parametrize("gfx942", "gfx950")` for several.
        """
    )


class LimitsField(Field):
    """Bounds on the resources of the compiled kernel; not part of its spec."""

    alias = "limits"
    value: Optional[FrozenDict[str, float]]
    default = None
    help = help_text(
        """
        Limits on the resources that the compiled kernel uses, e.g. `{"max_vgpr_spills": 0, "min_occupancy": 25}`. The
        build of a kernel that exceeds a limit fails with the numbers. docs/resources.md lists the limits.
        """
    )

    @classmethod
    def compute_value(cls, raw_value: Optional[Any], address: Address) -> Optional[FrozenDict[str, float]]:
        value = super().compute_value(raw_value, address)
        if value is None:
            return None
        if not isinstance(value, Mapping) or not all(
            isinstance(name, str) and type(bound) in (int, float) for name, bound in value.items()
        ):
            raise InvalidFieldTypeException(
                address, cls.alias, raw_value, expected_type='a dictionary such as {"max_vgpr_spills": 0}'
            )
        return FrozenDict(value)


class KernelTarget(ProposingTarget):
    """One kernel of the operation ``op``. Subclasses state ``op`` and ``core_fields = kernel_fields(op)``."""

    op: ClassVar[str]

    def spec(self) -> dict[str, Any]:
        """Return the spec as in the generator's requests: the operation and the fields that the BUILD file states."""
        stated = {field.alias: field.to_spec() for field in self.field_values.values() if isinstance(field, SpecField)}
        return {"op": self.op, **{name: value for name, value in stated.items() if value is not None}}


def kernel_fields(op: str) -> tuple[type[Field], ...]:
    """Return the fields of a target for a spec of the operation ``op``."""
    return (*COMMON_TARGET_FIELDS, KernelArchField, *spec_fields(op), LimitsField)
