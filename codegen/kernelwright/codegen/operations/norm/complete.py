"""From the fields that a user writes to all fields of a norm's spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.operations.norm.spec import NormSpec
from kernelwright.codegen.selecting.partial import PartialFields

PARTIAL = PartialFields(NormSpec, {})
"""The keys that a partial spec may have."""


def complete(raw: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
    """The fields of :class:`NormSpec` that ``raw`` stands for; SpecError for unknown keys and words."""
    fields = PARTIAL.read(raw)
    if "dtype" in fields:
        fields.setdefault("dtype_y", fields["dtype"])
    PARTIAL.check_complete(fields, arch.name)
    return fields
