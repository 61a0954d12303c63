"""Why a spec is refused: one violation per broken rule, and the errors that carry them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kernelwright.arch import Arch
from kernelwright.arch.texts import shortened
from kernelwright.files.proposals import closest as closest


@dataclass(frozen=True)
class Violation:
    """One broken rule.

    ``field`` is a path inside the spec such as ``warp_tile`` or ``tile.k``. ``message`` says why, with its source;
    ``allowed`` lists what is legal. ``nearest`` satisfies this rule alone; in an :class:`IllegalKernelError` it is the
    field's value in the nearest legal kernel ("" where there is none).
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
        return text


@dataclass(frozen=True)
class Rule:
    """A named check: ``check`` yields nothing for a legal spec and never raises.

    ``check`` takes specs of one operation. ``reason`` says once, for the reference documentation, why the rule exists.
    """

    id: str
    reason: str
    check: Callable[[Any, Arch], Iterable[Violation]]


def rules(prefix: str, checks: Iterable[Callable[[Any, Arch], Iterable[Violation]]]) -> tuple[Rule, ...]:
    """A rule for each check, named after it: ``check_tile`` becomes ``<prefix>tile``. The docstring is the reason."""
    return tuple(
        Rule(prefix + check.__name__.removeprefix("check_"), " ".join((check.__doc__ or "").split()), check)
        for check in checks
    )


Nearest = tuple[Mapping[str, Any], Mapping[str, str]] | None
"""All fields of a legal spec, and the text of those that differ from the requested one."""


class SpecError(ValueError):
    """Input that cannot be used: an unknown key, dtype, architecture or set, or a value of the wrong kind."""

    def __init__(self, message: str) -> None:
        super().__init__(shortened(message))


class IllegalKernelError(SpecError):
    """A well-formed spec that an architecture cannot run, with every reason and the nearest legal kernel.

    ``find`` searches for that kernel: all fields of its spec, and the text of those that differ; None if there is none.
    The search takes some milliseconds, so it starts when it is first asked for.
    """

    def __init__(self, arch: str, name: str, violations: Sequence[Violation], find: Callable[[], Nearest]) -> None:
        super().__init__(f"{name} is illegal on {arch}")
        self.arch = arch
        self.name = name
        self._violations = violations
        self._find = find

    @functools.cached_property
    def _nearest(self) -> Nearest:
        return self._find()

    @property
    def nearest(self) -> Mapping[str, Any] | None:
        """All fields of a legal spec close to the refused one; None if the search found none."""
        return self._nearest[0] if self._nearest else None

    @property
    def violations(self) -> tuple[Violation, ...]:
        """Every reason; each ``nearest`` is the value of the field in :attr:`nearest`."""
        return tuple(replace(one, nearest=_value(self.nearest or {}, one.field)) for one in self._violations)

    def __str__(self) -> str:
        text = f"{super().__str__()}:" + "".join(f"\n  {violation}" for violation in self._violations)
        if self._nearest:
            changed = ", ".join(f"{field} = {value}" for field, value in self._nearest[1].items())
            text += f"\n  nearest legal kernel: {changed}"
        return shortened(text)


def _value(spec: Mapping[str, Any], path: str) -> str:
    """Return the value at ``tile.k`` or ``tile`` as text; "" if it is not a field."""
    value: Any = spec
    for part in path.split("."):
        value = value.get(part, "") if isinstance(value, Mapping) else ""
    return "x".join(map(str, value.values())) if isinstance(value, Mapping) else str(value)


def typed(raw: Mapping[str, Any], key: str, kind: type, default: Any) -> Any:
    """Return ``raw[key]``, or ``default`` if it is missing or null; SpecError if it is not a ``kind``."""
    value = raw.get(key)
    if value is None:
        return default
    if not isinstance(value, kind):
        raise SpecError(f"request key {key!r} must be a {kind.__name__}, not {value!r}")
    return value
