"""Stand-ins for rules of the plugin, for tests of other rules."""

from __future__ import annotations

from typing import Any, Callable

from kernelwright.pants.compat import rule


def in_place_of(original: Callable[..., Any]) -> Callable[[Any], Any]:
    """Decorate a rule that runs wherever the rule ``original``, which is then left out, is called by name."""
    name: str = getattr(original, "rule").canonical_name  # noqa: B009  # no attribute that a type checker knows
    return rule(canonical_name=name)
