"""Problems as text: read from JSON fields, and shown as the constructor call."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, TypeVar

from kernelwright.problems.errors import ProblemError

P = TypeVar("P")


def shown(problem: Any) -> str:
    """Return a problem as the shortest constructor call that makes an equal one."""
    given = fewest_fields(problem)
    return f"{type(problem).__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def fewest_fields(problem: Any) -> dict[str, Any]:
    """Return the smallest set of fields that makes an equal problem."""
    given = {one.name: getattr(problem, one.name) for one in fields(problem) if one.init}
    for name in reversed(list(given)):  # derived fields stand after those that they follow from
        rest = {key: value for key, value in given.items() if key != name}
        with contextlib.suppress(TypeError, ProblemError):
            if type(problem)(**rest) == problem:
                given = rest
    return given


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
