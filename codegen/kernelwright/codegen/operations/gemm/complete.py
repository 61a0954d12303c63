"""From the fields that a user writes to all fields of a GEMM spec, with the architecture's defaults."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.operation import Shorthand
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.spec import (
    Extent,
    GemmSpec,
    Padding,
    default_acc_dtype,
    default_output_dtype,
)
from kernelwright.codegen.violations import SpecError, closest

SHORTHANDS: Mapping[str, Shorthand] = {"dtype": Shorthand("dtype_a", "Element type of both A and B.")}
"""Fields of a partial spec that stand for several fields."""

_TYPES: Mapping[str, Any] = {
    **{name: GemmSpec.model_fields[short.field].annotation for name, short in SHORTHANDS.items()},
    **{name: info.annotation for name, info in GemmSpec.model_fields.items()},
}
_ENUMS: Mapping[str, Mapping[str, StrEnum]] = {
    name: {str(member): member for member in kind}
    for name, kind in _TYPES.items()
    if isinstance(kind, type) and issubclass(kind, StrEnum)
}
EXTENTS = tuple(name for name, kind in _TYPES.items() if kind is Extent)
"""Fields that hold three extents."""

TRIPLES = tuple(name for name, kind in _TYPES.items() if kind in (Extent, Padding))
"""Fields that hold one value for each of M, N and K."""

_FLAT = {f"{field}_{axis}": (field, axis) for field in TRIPLES for axis in "mnk"}
FIELDS = (*_TYPES, *_FLAT)
"""Every key that a partial spec may have; ``tile_m`` and its like are the flat spelling of ``tile``."""

_REQUIRED = tuple(name for name, info in GemmSpec.model_fields.items() if info.is_required())


def complete(raw: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
    """The fields of :class:`GemmSpec` that ``raw`` stands for; SpecError for unknown keys and enum values.

    ``dtype`` stands for ``dtype_a`` and ``dtype_b``; ``dtype_acc`` and ``dtype_c`` follow from ``dtype_a``; extents are
    ``{"m", "n", "k"}``, ``[m, n, k]`` or flat (``tile_m``). Padding is on. Where the architecture has one pipeline for
    plain B, one for shuffled B or one wave set, or a pipeline one epilogue and scheduler, it need not be named: the
    first that the architecture lists is taken.
    """
    fields: dict[str, Any] = {}
    for key, value in raw.items():
        if key in _ENUMS:
            fields[key] = _enum_value(key, value)
        elif key in TRIPLES:
            fields[key] = _extent(key, value)
        elif key in _TYPES:
            fields[key] = value
        elif key not in _FLAT:
            raise SpecError(f"unknown field {key!r}{closest(key, FIELDS)}; allowed: {', '.join(FIELDS)}")
    for key, value in raw.items():
        if key in _FLAT:
            outer, axis = _FLAT[key]
            inner = fields.setdefault(outer, {})
            if axis in inner and outer in raw:
                raise SpecError(f"both {outer!r} and {key!r} are given; keep one of them")
            inner[axis] = value
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
    pipelines = [name for name, limits in section.pipelines.items() if limits.preshuffle == shuffled]
    pipelines = pipelines or list(section.pipelines)
    if len(pipelines) == 1:
        fields.setdefault("pipeline", pipelines[0])
    limits = section.pipelines.get(fields.get("pipeline", ""))
    if limits:
        fields.setdefault("epilogue", limits.epilogues[0])
        fields.setdefault("scheduler", limits.schedulers[0])
        fields.setdefault("preshuffle", limits.preshuffle)
        fields.setdefault("persistent", limits.persistent[0])
    if len(section.waves) == 1:
        fields.setdefault("wave", dict(zip("mnk", section.waves[0], strict=True)))
    missing = [name for name in _REQUIRED if name not in fields]
    if missing:
        raise SpecError(f"missing field {', '.join(map(repr, missing))} (arch {arch.name} has no default for it)")


def _enum_value(key: str, value: object) -> StrEnum:
    members = _ENUMS[key]
    if isinstance(value, str) and value in members:
        return members[value]
    raise SpecError(f"{key} = {value!r} is unknown{closest(str(value), members)}; allowed: {', '.join(members)}")


def _extent(key: str, value: object) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple) and len(value) == 3:
        return dict(zip("mnk", value, strict=True))
    raise SpecError(f'{key} = {value!r} is neither [m, n, k] nor {{"m", "n", "k"}}')
