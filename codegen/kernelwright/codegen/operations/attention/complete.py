"""From the fields that a user writes to all fields of an attention spec, with the architecture's defaults."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from kernelwright.arch import Arch
from kernelwright.codegen.operation import Shorthand
from kernelwright.codegen.operations.attention.arch_section import (
    AttentionSection,
    Row,
    attention_section,
    hdim_distance,
)
from kernelwright.codegen.operations.attention.products import Point, points
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.violations import SpecError, closest

SHORTHANDS: Mapping[str, Shorthand] = {"hdim": Shorthand("hdim_q", "Head dimension of Q, K, V and O.")}
"""Fields of a partial spec that stand for several fields."""

_TYPES: Mapping[str, Any] = {
    "hdim": int,
    **{name: info.annotation for name, info in AttentionSpec.model_fields.items()},
}
_ENUMS: Mapping[str, Mapping[str, StrEnum]] = {
    name: {str(member): member for member in kind}
    for name, kind in _TYPES.items()
    if isinstance(kind, type) and issubclass(kind, StrEnum)
}
MODELS: Mapping[str, type[BaseModel]] = {
    name: kind for name, kind in _TYPES.items() if isinstance(kind, type) and issubclass(kind, BaseModel)
}
"""Fields that hold several values: extents, or padding."""

_FLAT = {f"{name}_{axis}": (name, axis) for name, kind in MODELS.items() for axis in kind.model_fields}
FIELDS = (*_TYPES, *_FLAT)
"""Every key that a partial spec may have; ``tile_m0`` and its like are the flat spelling of ``tile``."""

_EXTENTS = ("tile", "bwd_tile", "wave", "warp_tile")
# What a line of the table says beside its extents.
_OF_ROWS = ("block_per_cu", "max_seq_len_q", "constraint_tag")
_RECEIPT = (
    "'receipt' is no property of a kernel: receipts are sets of kernels here (set = \"attention:ck_default\" and the "
    "like); leave it out"
)


def complete(raw: Mapping[str, Any], arch: Arch) -> dict[str, Any]:
    """The fields of :class:`AttentionSpec` that ``raw`` stands for; SpecError for unknown keys and enum values.

    ``hdim`` stands for ``hdim_q`` and ``hdim_v``, and the latter is the former where it is left out. Extents are lists
    (0 for those that are left out at the end), objects, or flat (``tile_m0``). What is not stated comes from the
    architecture's table of kernels: the last line, with the largest tile, of the family, data type and head dimensions
    and the combination of features that has most of what is stated and least else.
    """
    if "receipt" in raw:
        raise SpecError(_RECEIPT)
    fields: dict[str, Any] = {}
    for key, value in raw.items():
        if key in _ENUMS:
            fields[key] = _enum_value(key, value)
        elif key in MODELS:
            fields[key] = _values(key, value)
        elif key in _TYPES:
            fields[key] = value
        elif key not in _FLAT:
            raise SpecError(f"unknown field {key!r}{closest(key, FIELDS)}; allowed: {', '.join(FIELDS)}")
    for key, value in raw.items():
        if key in _FLAT:
            outer, axis = _FLAT[key]
            inner = fields.setdefault(outer, {})
            if outer in raw and axis in inner:
                raise SpecError(f"both {outer!r} and {key!r} are given; keep one of them")
            inner[axis] = value
    _head_dimensions(fields)
    _fill(fields, arch)
    missing = [name for name, info in AttentionSpec.model_fields.items() if info.is_required() and name not in fields]
    if missing:
        raise SpecError(f"missing field {', '.join(map(repr, missing))} (arch {arch.name} has no default for it)")
    return fields


def _head_dimensions(fields: dict[str, Any]) -> None:
    if "hdim" in fields:
        if {"hdim_q", "hdim_v"} & set(fields):
            raise SpecError("'hdim' stands for both 'hdim_q' and 'hdim_v': give it or them")
        fields["hdim_q"] = fields.pop("hdim")
    if "hdim_q" in fields:
        fields.setdefault("hdim_v", fields["hdim_q"])
    for name in ("hdim_q", "hdim_v"):
        if name in fields and type(fields[name]) is not int:
            raise SpecError(f"{name} = {fields[name]!r} is no whole number")


def _fill(fields: dict[str, Any], arch: Arch) -> None:
    """Add what the table says to fields that lack it."""
    if not {"family", "dtype", "hdim_q"} <= set(fields):
        return
    section = attention_section(arch)
    rows = _rows(section, fields["family"], fields["dtype"], (fields["hdim_q"], fields["hdim_v"]))
    own = section.pipelines_of(fields["family"])
    stated = {name: value for name, value in fields.items() if name != "op"}
    best = max(_candidates(rows, stated), key=lambda candidate: candidate[0], default=None)
    if best is not None:
        _, row, point = best
        made = {**_of_row(row), **point.fields}
        for name in ("pipeline", "pad", *_EXTENTS, *_OF_ROWS, "max_splits_log2", "page_size", *_FORCED):
            if name in made:
                _set(fields, name, made[name])
    elif len(own) == 1:
        fields.setdefault("pipeline", own[0])


def _rows(section: AttentionSection, family: Any, dtype: Any, hdim: tuple[Any, Any]) -> tuple[Row, ...]:
    """The lines for these, else for the closest head dimensions, else for other types: rules then say what is wrong."""
    exact = section.rows(family, dtype, hdim)
    if exact:
        return exact
    of_family = [row for row in section.kernels if row.family is family]
    same = [row for row in of_family if dtype in row.dtypes] or of_family
    if not same:
        return ()
    closest_hdim = min((row.hdim for row in same), key=lambda one: hdim_distance(hdim, one))
    return tuple(row for row in same if row.hdim == closest_hdim)


# Features that follow from the family or pipeline where a product has one value of them only.
_FORCED = (
    "group",
    "lse",
    "paged_kv",
    "static_quant",
    "trload",
    "deterministic",
    "kv_lookup_table",
    "hdim_q_alignment",
    "hdim_v_alignment",
)
_FEATURES = {
    name: info.default
    for name, info in AttentionSpec.model_fields.items()
    if not info.is_required() and name not in (*MODELS, *_OF_ROWS, "num_wave_groups")
}


def _candidates(rows: tuple[Row, ...], stated: Mapping[str, Any]) -> Iterator[tuple[tuple[int, ...], Row, Point]]:
    """Lines and combinations of features that agree with ``stated``, with how good each is."""
    for index, row in enumerate(rows):
        of_row = _of_row(row)
        agreeing = sum(_agrees(stated[name], of_row[name]) for name in _EXTENTS if name in stated)
        if any(name in stated and not _agrees(stated[name], of_row[name]) for name in _OF_ROWS):
            continue
        for product in row.products:
            for place, point in enumerate(points(product)):
                if point.extended:
                    continue
                differing = _differing(stated, point)
                wanted = sum(value is not False and value != "none" for value in point.fields.values())
                padded = sum(getattr(point.fields["pad"], axis) for axis in ("s", "sk", "d", "dv"))
                yield (agreeing, -differing, -wanted, padded, index, -place), row, point


def _differing(stated: Mapping[str, Any], point: Point) -> int:
    """How many of the stated features the combination lacks; rules say later whether they are possible together."""
    of_point = point.fields
    return sum(
        not _agrees(value, of_point[name]) if name in of_point else name in _FEATURES and value != _FEATURES[name]
        for name, value in stated.items()
    )


def _of_row(row: Row) -> dict[str, Any]:
    return {**row.extents, **{name: getattr(row, name) for name in _OF_ROWS}}


def _agrees(stated: Any, made: Any) -> bool:
    if isinstance(stated, Mapping) and isinstance(made, BaseModel):
        return all(getattr(made, axis, None) == value for axis, value in stated.items())
    return bool(stated == made)


def _set(fields: dict[str, Any], name: str, made: Any) -> None:
    if name not in fields:
        fields[name] = made
    elif isinstance(fields[name], dict) and isinstance(made, BaseModel):
        fields[name] = {**{axis: getattr(made, axis) for axis in type(made).model_fields}, **fields[name]}


def _enum_value(key: str, value: object) -> StrEnum:
    members = _ENUMS[key]
    if isinstance(value, str) and value in members:
        return members[value]
    raise SpecError(f"{key} = {value!r} is unknown{closest(str(value), members)}; allowed: {', '.join(members)}")


def _values(key: str, value: object) -> dict[str, Any]:
    axes = MODELS[key].model_fields
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        if key == "pad" and len(value) == len(axes):
            return dict(zip(axes, value, strict=True))
        if key != "pad" and 0 < len(value) <= len(axes):
            return {**dict.fromkeys(axes, 0), **dict(zip(axes, value, strict=False))}
    least = len(axes) if key == "pad" else 1
    how_many = f"{least} to {len(axes)}" if least < len(axes) else str(least)
    raise SpecError(f"{key} = {value!r} is neither a list of {how_many} values nor an object of {', '.join(axes)}")
