"""Files and requests from outside: read within bounds, then checked against a schema; SpecError says what is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelwright.codegen.violations import SpecError
from kernelwright.files import strict_json
from kernelwright.files.commands import os_error_text
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.reading import read_problem

_Schema = TypeVar("_Schema", bound=BaseModel)
_Problem = TypeVar("_Problem")
_MOST_REASONS = 3


class Input(BaseModel):
    """The schema of something that others wrote: unknown keys are refused, and so are values of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


def read_json(path: str | Path, most_bytes: int = strict_json.MAX_BYTES) -> Any:
    """The contents of a JSON file; SpecError if it cannot be read, or for what :mod:`strict_json` refuses."""
    try:
        return strict_json.read_json(path, most_bytes)
    except OSError as error:
        raise SpecError(f"cannot read {os_error_text(error)}") from None
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


def recorded_problem(kind: type[_Problem], raw: Mapping[str, Any], what: str) -> _Problem:
    """The problem of a trace's entry; ``what`` as in :func:`kernelwright.problems.reading.read_problem`.

    SpecError for unknown fields and values that make no problem.
    """
    try:
        return read_problem(kind, raw, what)
    except ProblemError as error:
        raise SpecError(str(error)) from None


def reason(item: Any) -> str:
    """One line for one error of pydantic's: the field, its value, and what is allowed."""
    field = ".".join(map(str, item["loc"]))
    if item["type"] == "extra_forbidden":
        return f"unknown field {field!r}"
    if item["type"] == "missing":
        return f"missing field {field!r}"
    return f"{field or 'it'} = {item['input']!r:.200}: {item['msg'].removeprefix('Input ')}"
