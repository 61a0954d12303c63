"""Completes the fields that a user writes to a full GEMM spec, with the architecture's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.operation import Shorthand
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.spec import GemmSpec, default_acc_dtype, default_output_dtype
from kernelwright.codegen.selecting.partial import PartialFields
from kernelwright.codegen.tiled.sections import fill_pipeline
from kernelwright.codegen.violations import SpecError

SHORTHANDS: Mapping[str, Shorthand] = {"dtype": Shorthand("dtype_a", "Element type of both A and B.")}
"""Fields of a partial spec that stand for several fields."""

PARTIAL = PartialFields(GemmSpec, SHORTHANDS)
"""Keys that a partial spec may have, and their spellings."""


def complete(raw: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
    """Return the fields of :class:`GemmSpec` that ``raw`` stands for; SpecError for unknown keys and enum values.

    ``dtype`` stands for ``dtype_a`` and ``dtype_b``; ``dtype_acc`` and ``dtype_c`` follow from ``dtype_a``; extents are
    ``{"m", "n", "k"}``, ``[m, n, k]`` or flat (``tile_m``). Padding is on. Where the architecture has one pipeline for
    plain B, one for shuffled B or one wave set, or a pipeline one epilogue and scheduler, it may be omitted: the first
    that the architecture lists is taken.
    """
    fields = PARTIAL.read(raw)
    _fill(fields, arch)
    return fields


def _fill(fields: dict[str, Any], arch: Arch) -> None:
    if "dtype" in fields:
        if {"dtype_a", "dtype_b"} & set(fields):
            raise SpecError("'dtype' stands for both 'dtype_a' and 'dtype_b': give it or them")
        fields["dtype_a"] = fields["dtype_b"] = fields.pop("dtype")
    if "dtype_a" in fields:
        fields.setdefault("dtype_b", fields["dtype_a"])
        fields.setdefault("dtype_acc", default_acc_dtype(fields["dtype_a"]))
        fields.setdefault("dtype_c", default_output_dtype(fields["dtype_a"]))
    section = gemm_section(arch)
    shuffled = bool(fields.get("preshuffle", False))
    usual = {name: limits for name, limits in section.pipelines.items() if not limits.named}
    pipelines = [name for name, limits in usual.items() if limits.preshuffle == shuffled]
    limits = fill_pipeline(fields, section.pipelines, pipelines or list(usual), section.waves)
    if limits is not None:
        fields.setdefault("preshuffle", limits.preshuffle)
        fields.setdefault("persistent", limits.persistent[0])
    PARTIAL.check_complete(fields, arch.name)
