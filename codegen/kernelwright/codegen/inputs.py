"""Files and requests from outside: read within bounds, then checked against a schema; SpecError says what is wrong."""

from __future__ import annotations

import math
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelwright.codegen.violations import SpecError
from kernelwright.files import strict_json

_Schema = TypeVar("_Schema", bound=BaseModel)
_MOST_REASONS = 3


class Input(BaseModel):
    """The schema of something that others wrote: unknown keys are refused, and so are values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def read_json(path: str | Path, most_bytes: int = strict_json.MAX_BYTES) -> Any:
    """The contents of a JSON file; SpecError if it cannot be read, or for what :mod:`strict_json` refuses."""
    try:
        return strict_json.read_json(path, most_bytes)
    except OSError as error:
        raise SpecError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except ValueError as error:
        raise SpecError(f"{str(path)!r} is not JSON: {error}") from None


def checked(schema: type[_Schema], raw: object, what: str) -> _Schema:
    """``raw`` as its schema; SpecError with ``what`` and the first wrong fields."""
    try:
        return schema.model_validate(raw)
    except ValidationError as error:
        reasons = [reason(item) for item in error.errors(include_url=False)]
        more = f"; and {len(reasons) - _MOST_REASONS} more" if len(reasons) > _MOST_REASONS else ""
        raise SpecError(f"{what} is wrong: {'; '.join(reasons[:_MOST_REASONS])}{more}") from None


def check_kinds(given: object) -> None:
    """TypeError for a field of a dataclass whose value is not of its annotated kind, or does not fit 64 bits.

    For what is made of a file's numbers, flags, texts and tuples of numbers. Annotations are texts.
    """
    for one in fields(given):  # type: ignore[arg-type]
        value, kind = getattr(given, one.name), str(one.type)
        if not ((value is None and "None" in kind) or _is_of(value, kind)):
            raise TypeError(f"{one.name} is {value!r:.80}; allowed: {kind}")


def _is_of(value: object, kind: str) -> bool:
    if kind.startswith("tuple[int"):
        return isinstance(value, tuple) and all(_is_of(inner, "int") for inner in value)
    if kind.startswith("int"):
        return type(value) is int and abs(value) < 2**63
    if kind.startswith("float"):
        return (type(value) is int and abs(value) < 2**63) or (type(value) is float and math.isfinite(value))
    return type(value) is {"bool": bool, "str": str}.get(kind, type(value))


def reason(item: Any) -> str:
    """One line for one error of pydantic's: the field, its value, and what is allowed."""
    field = ".".join(map(str, item["loc"]))
    if item["type"] == "extra_forbidden":
        return f"unknown field {field!r}"
    if item["type"] == "missing":
        return f"missing field {field!r}"
    return f"{field or 'it'} = {item['input']!r:.200}: {item['msg'].removeprefix('Input ')}"
