"""Completes the fields that a user writes to a full convolution spec, with the architecture's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES
from kernelwright.codegen.operation import Shorthand
from kernelwright.codegen.operations.convolution.arch_section import conv_section
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec
from kernelwright.codegen.selecting.partial import PartialFields
from kernelwright.codegen.tiled.sections import fill_pipeline

SHORTHANDS: Mapping[str, Shorthand] = {}
"""Empty: operands and result have one dtype."""

PARTIAL = PartialFields(GroupedConvSpec, SHORTHANDS)
"""Keys that a partial spec may have, and their spellings."""

_ONE = {"m": 1, "n": 1, "k": 1}
_USUAL_BYTES = 16


def complete(raw: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
    """The fields of :class:`GroupedConvSpec` that ``raw`` stands for; SpecError for unknown keys and enum values.

    Extents are ``{"m", "n", "k"}``, ``[m, n, k]`` or flat (``tile_m``), and so are other fields of several values.
    Where the architecture has one pipeline of a kind or one wave set, or a pipeline one epilogue and scheduler, it may
    be omitted: the first that the architecture lists is taken. Vectors are 16 bytes wide; the GEMM of a depthwise
    kernel is 1 by 1 by 1.
    """
    fields = PARTIAL.read(raw)
    section = conv_section(arch)
    depthwise = bool(fields.get("depthwise", False))
    pipelines = [name for name, limits in section.pipelines.items() if limits.depthwise == depthwise]
    if depthwise:
        for field in ("tile", "wave", "warp_tile"):
            fields.setdefault(field, dict(_ONE))
    limits = fill_pipeline(fields, section.pipelines, pipelines, section.waves)
    if limits is not None:
        fields.setdefault("double_smem_buffer", limits.double_buffer)
    if "dtype" in fields:
        widest = 1 if section.vector_bytes is None else _USUAL_BYTES // ELEMENT_BYTES[fields["dtype"]]
        vector = fields.setdefault("vector", {})
        for operand in "abc":
            vector.setdefault(operand, widest)
    PARTIAL.check_complete(fields, arch.name)
    return fields
