"""A kernel: the spec of an operation on an architecture, from which its identity, name and symbol follow."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from kernelwright.codegen.registry import lookup
from kernelwright.codegen.violations import SpecError

OMITTED_AT_DEFAULT: dict[str, Any] = {"omitted_at_default": True}
"""``json_schema_extra`` of a field that canonical JSON leaves out at its default.

Fields added after an operation's first release have it, so that the identities of older kernels stay the same.
"""


class Frozen(BaseModel):
    """A hashable model that refuses unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Spec(Frozen):
    """What to compute and how to tile it. Each operation has a subclass, whose ``op`` is its name.

    ``computed`` are the fields that say what is computed: the search for the nearest legal kernel changes them last.
    ``target`` is what BUILD files call a kernel, by default the operation's name with ``_kernel`` behind it.
    """

    computed: ClassVar[tuple[str, ...]] = ()
    target: ClassVar[str] = ""
    op: str

    @model_serializer(mode="wrap")
    def _dump(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        fields: dict[str, Any] = write(self)
        for name, default in _omitted(type(self)).items():
            if fields[name] == default:
                del fields[name]
        return fields


@functools.cache
def _omitted(spec_type: type[Spec]) -> Mapping[str, Any]:
    extras = ((name, info, info.json_schema_extra) for name, info in spec_type.model_fields.items())
    return {
        name: info.default for name, info, extra in extras if isinstance(extra, dict) and extra == OMITTED_AT_DEFAULT
    }


def flat_values(spec: Spec) -> dict[str, Any]:
    """Return the fields of a spec as text, numbers and booleans; ``tile.m`` is called ``tile_m``."""
    values: dict[str, Any] = {}
    for name in type(spec).model_fields:
        value = getattr(spec, name)
        if isinstance(value, BaseModel):
            values.update({f"{name}_{inner}": getattr(value, inner) for inner in type(value).model_fields})
        else:
            values[name] = str(value) if isinstance(value, StrEnum) else value
    return values


def flat_names(spec_type: type[Spec]) -> tuple[str, ...]:
    """Return the keys of :func:`flat_values` for specs of this type."""
    names: list[str] = []
    for name, info in spec_type.model_fields.items():
        kind = info.annotation
        nested = isinstance(kind, type) and issubclass(kind, BaseModel)
        names += [f"{name}_{inner}" for inner in kind.model_fields] if nested else [name]  # type: ignore[union-attr]
    return tuple(names)


def is_set(spec: Spec, field: str) -> bool:
    """Return whether ``field`` differs from its default."""
    return bool(getattr(spec, field) != type(spec).model_fields[field].default)


def _spec_of(raw: object) -> object:
    if isinstance(raw, Mapping):
        if "op" not in raw:
            raise SpecError('missing field \'op\'; write the operation, such as "op": "gemm"')
        return lookup(raw["op"]).spec_type.model_validate(raw)
    return raw


class Kernel(Frozen):
    """A spec on an architecture: the unit that is built, named, cached and dispatched.

    The type of ``spec`` follows from its ``op``, which has no default.
    """

    arch: str
    spec: Annotated[SerializeAsAny[Spec], BeforeValidator(_spec_of)]

    def __repr__(self) -> str:
        """Architecture, name and the beginning of the identity."""
        return f"<Kernel {self.arch}: {self.name}, {self.identity[:12]}>"

    @cached_property
    def canonical_json(self) -> str:
        """The fields of architecture and spec as JSON, sorted keys and no blanks: the text that the identity hashes."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))

    @cached_property
    def identity(self) -> str:
        """sha256 of :attr:`canonical_json`, 64 hex digits."""
        return hashlib.sha256(self.canonical_json.encode()).hexdigest()

    @cached_property
    def name(self) -> str:
        """The readable name that the operation gives the spec, unique within the architecture."""
        name: str = lookup(self.spec.op).name_of(self.spec)
        return name

    @cached_property
    def symbol(self) -> str:
        """The C symbol of the kernel's descriptor."""
        return f"kw_kernel_{self.identity[:16]}"
