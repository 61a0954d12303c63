"""Problems as text: read from JSON fields, and shown as the constructor call."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from kernelwright.problems.errors import ProblemError

P = TypeVar("P")


def shown(problem: Any) -> str:
    """Return a problem as the constructor call, without fields that have their defaults."""
    given = {
        each.name: getattr(problem, each.name)
        for each in fields(problem)
        if each.init and each.repr and getattr(problem, each.name) != each.default
    }
    return f"{type(problem).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def read_problem(kind: type[P], given: Mapping[str, Any], what: str) -> P:
    """Return the problem of a trace entry; ``what`` is its name in sentences, such as ``convolution``.

    ProblemError for unknown and missing fields, and for illegal values.
    """
    known = {one.name: one for one in fields(kind) if one.init}  # type: ignore[arg-type]
    if unknown := sorted(set(given) - set(known)):
        raise ProblemError(f"a {what} has unknown fields {', '.join(unknown)}; allowed: {', '.join(known)}")
    if missing := [name for name, one in known.items() if one.default is MISSING and name not in given]:
        raise ProblemError(f"a {what} lacks {', '.join(missing)}: {dict(given)!r}")
    try:
        for name, value in given.items():
            _check_kind(name, value, str(known[name].type))
        return kind(**{name: _tuples(value) for name, value in given.items()})
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{dict(given)!r} is no {what}: {error}") from None


def _check_kind(name: str, value: object, kind: str) -> None:
    """Check a flag or factor from a file, which must be as JSON writes it; programs may pass any compatible type."""
    if kind == "bool" and type(value) is not bool:
        raise ProblemError(f"{name} is {value!r:.80}; allowed: true or false")
    if value is None and kind.endswith("| None"):
        return
    if kind.startswith("float") and not (type(value) in (int, float) and math.isfinite(value)):  # type: ignore[arg-type]
        raise ProblemError(f"{name} is {value!r:.80}; allowed: a finite number")


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
