"""Completes the fields that a user writes to a full norm spec."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.operations.norm.spec import NormSpec
from kernelwright.codegen.selecting.partial import PartialFields
from kernelwright.problems.shared import ITEM_BYTES

PARTIAL = PartialFields(NormSpec, {})
"""Keys that a partial spec may have."""

ACCESS_BYTES = 16
"""The most bytes that a GPU thread reads at once."""
_THREADS, _UNROLL = 256, 2


def complete(raw: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
    """Return the fields of :class:`NormSpec` that ``raw`` stands for; SpecError for unknown keys and words."""
    fields = PARTIAL.read(raw)
    if "dtype" in fields:
        fields.setdefault("dtype_y", fields["dtype"])
        if arch.backend != "cpu" and fields["dtype"] in ITEM_BYTES:
            fields.setdefault("threads_per_row", _THREADS)
            fields.setdefault("vector", ACCESS_BYTES // ITEM_BYTES[fields["dtype"]])
            fields.setdefault("unroll", _UNROLL)
    PARTIAL.check_complete(fields, arch.name)
    return fields
