"""Why a spec is refused: one violation per broken rule, and the errors that carry them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelwright.arch import Arch
    from kernelwright.codegen.spec import GemmSpec


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
    """A named check: ``check`` yields nothing for a spec that is fine and never raises.

    ``reason`` says once, for the reference documentation, why the rule exists.
    """

    id: str
    reason: str
    check: Callable[[GemmSpec, Arch], Iterable[Violation]]


class SpecError(ValueError):
    """Text or data that is no spec: an unknown key, dtype, architecture, rule set, or a value of the wrong kind."""


class IllegalKernelError(SpecError):
    """A well-formed spec that an architecture cannot run, with every reason."""

    def __init__(self, arch: str, name: str, violations: Sequence[Violation]) -> None:
        self.arch = arch
        self.name = name
        self.violations = tuple(violations)
        lines = "".join(f"\n  {violation}" for violation in self.violations)
        super().__init__(f"{name} is illegal on {arch}:{lines}")
