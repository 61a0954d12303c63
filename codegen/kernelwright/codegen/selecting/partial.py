"""Converts the fields that a user writes to the fields of a spec, for any operation."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pydantic import BaseModel

from kernelwright.codegen.kernel import Spec
from kernelwright.codegen.operation import Shorthand
from kernelwright.codegen.violations import SpecError, closest


class PartialFields:
    """Accepted spellings of the fields of ``spec_type`` and its ``shorthands``.

    ``names`` are all keys that a partial spec may have. ``groups`` are the fields of several values, with the names of
    these; ``tile_m`` and the like are the flat spelling of such a field. ``required`` fields have no default.
    """

    def __init__(self, spec_type: type[Spec], shorthands: Mapping[str, Shorthand]) -> None:
        types = {name: spec_type.model_fields[short.field].annotation for name, short in shorthands.items()}
        types |= {name: info.annotation for name, info in spec_type.model_fields.items()}
        self.groups: Mapping[str, tuple[str, ...]] = {
            name: tuple(kind.model_fields)
            for name, kind in types.items()
            if isinstance(kind, type) and issubclass(kind, BaseModel)
        }
        self._enums: Mapping[str, Mapping[str, StrEnum]] = {
            name: {str(member): member for member in kind}
            for name, kind in types.items()
            if isinstance(kind, type) and issubclass(kind, StrEnum)
        }
        self._flat = {f"{field}_{axis}": (field, axis) for field, axes in self.groups.items() for axis in axes}
        self.names = (*types, *(name for name in self._flat if name not in types))
        self.required = tuple(name for name, info in spec_type.model_fields.items() if info.is_required())
        self._types = types

    def read(self, raw: Mapping[str, Any]) -> dict[str, Any]:
        """``raw`` with enums as members and groups as dicts; SpecError for unknown keys or values and double fields."""
        fields: dict[str, Any] = {}
        for key, value in raw.items():
            if key in self._enums:
                fields[key] = self._member(key, value)
            elif key in self.groups:
                fields[key] = self._group(key, value)
            elif key in self._types:
                fields[key] = value
            elif key not in self._flat:
                raise SpecError(f"unknown field {key!r}{closest(key, self.names)}; allowed: {', '.join(self.names)}")
        for key, value in raw.items():
            if key in self._flat and key not in self._types:
                outer, axis = self._flat[key]
                inner = fields.setdefault(outer, {})
                if axis in inner and outer in raw:
                    raise SpecError(f"both {outer!r} and {key!r} are given; keep one of them")
                inner[axis] = value
        return fields

    def check_complete(self, fields: Mapping[str, Any], arch: str) -> None:
        """Raise SpecError if a field without a default is missing."""
        missing = [name for name in self.required if name not in fields]
        if missing:
            raise SpecError(f"missing field {', '.join(map(repr, missing))} (arch {arch} has no default for it)")

    def _member(self, key: str, value: object) -> StrEnum:
        members = self._enums[key]
        if isinstance(value, str) and value in members:
            return members[value]
        raise SpecError(f"{key} = {value!r} is unknown{closest(str(value), members)}; allowed: {', '.join(members)}")

    def _group(self, key: str, value: object) -> dict[str, Any]:
        axes = self.groups[key]
        if isinstance(value, Mapping):
            return dict(value)
        if isinstance(value, list | tuple) and len(value) == len(axes):
            return dict(zip(axes, value, strict=True))
        named = ", ".join(f'"{axis}"' for axis in axes)
        raise SpecError(f"{key} = {value!r} is neither [{', '.join(axes)}] nor {{{named}}}")
