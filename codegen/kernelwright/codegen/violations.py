"""Why a spec is refused: one violation per broken rule, and the errors that carry them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernelwright.arch import Arch
from kernelwright.arch.texts import shortened


@dataclass(frozen=True)
class Violation:
    """One broken rule.

    ``field`` is a path inside the spec such as ``warp_tile`` or ``tile.k``. ``message`` says why, with its source;
    ``allowed`` lists what is legal and ``nearest`` the legal choice closest to ``value`` ("" where there is none).
    """

    rule: str
    field: str
    value: str
    message: str
    allowed: str
    nearest: str

    def __str__(self) -> str:
        text = f"{self.rule}: {self.field} = {self.value}: {self.message}"
        if self.allowed:
            text += f"; allowed: {self.allowed}"
        if self.nearest and self.nearest != self.allowed:
            text += f"; nearest: {self.nearest}"
        return text


@dataclass(frozen=True)
class Rule:
    """A named check: ``check`` yields nothing for a legal spec and never raises.

    ``check`` takes specs of one operation. ``reason`` says once, for the reference documentation, why the rule exists.
    """

    id: str
    reason: str
    check: Callable[[Any, Arch], Iterable[Violation]]


class SpecError(ValueError):
    """Input that cannot be used: an unknown key, dtype, architecture or set, or a value of the wrong kind."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))


class IllegalKernelError(SpecError):
    """A well-formed spec that an architecture cannot run, with every reason."""

    def __init__(self, arch: str, name: str, violations: Sequence[Violation]) -> None:
        self.arch = arch
        self.name = name
        self.violations = tuple(violations)
        lines = "".join(f"\n  {violation}" for violation in self.violations)
        super().__init__(f"{name} is illegal on {arch}:{lines}")


def closest(text: str, allowed: Iterable[str]) -> str:
    """`` (did you mean …?)`` with the entry of ``allowed`` that is closest to ``text``; "" if none is close."""
    close = difflib.get_close_matches(text, list(allowed), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""


def typed(raw: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    """``raw[key]``, or ``default`` if it is missing or null; SpecError if it is not a ``kind``."""
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise SpecError(f"request key {key!r} must be a {kind.__name__}, not {value!r}")
    return value
