"""The rules of attention: those that hold everywhere, then those of a backend."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

from kernelwright.arch import Arch
from kernelwright.codegen.operations.attention.constraints import ck_tile, common, cpu, cutlass, families, tiles
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.violations import Rule, SpecError, Violation

_Check = Callable[[AttentionSpec, Arch], Iterable[Violation]]
BACKENDS = ("cpu", "ck_tile", "cutlass")


@functools.cache
def rules_of(backend: str) -> tuple[Rule, ...]:
    """Every rule, in the order in which violations are listed; SpecError for an unknown backend."""
    if backend not in BACKENDS:
        raise SpecError(f"no attention kernel is for the backend {backend!r}; allowed: {', '.join(BACKENDS)}")
    checks = (*common.CHECKS, *families.CHECKS, *tiles.CHECKS)
    prefix, more = {
        "ck_tile": ("ck_tile.attention_", ck_tile.CHECKS),
        "cpu": ("attention_cpu.", cpu.CHECKS),
        "cutlass": ("attention_cuda.", cutlass.CHECKS),
    }[backend]
    return (*(_rule("attention.", check) for check in checks), *(_rule(prefix, check) for check in more))


def _rule(prefix: str, check: _Check) -> Rule:
    return Rule(prefix + check.__name__.removeprefix("check_"), " ".join((check.__doc__ or "").split()), check)
