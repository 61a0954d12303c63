"""Is a kernel legal on its architecture? Every rule is asked, every reason is returned."""

from __future__ import annotations

import functools

from kernelwright.arch import Arch
from kernelwright.codegen.backends import rules_of
from kernelwright.codegen.rules import common
from kernelwright.codegen.spec import Kernel
from kernelwright.codegen.violations import Rule, Violation


def validate(kernel: Kernel, arch: Arch) -> tuple[Violation, ...]:
    """Why ``kernel`` cannot be built for ``arch``; empty if it can. Never raises for a well-formed kernel."""
    if kernel.arch != arch.name:
        return (Violation("gemm.arch", "arch", kernel.arch, "the kernel is for another arch", arch.name, arch.name),)
    spec = kernel.spec
    return tuple(violation for rule in rules(arch.backend) for violation in rule.check(spec, arch))


@functools.cache
def rules(backend: str) -> tuple[Rule, ...]:
    """The rules of a backend: the common ones, then its own."""
    return (*common.RULES, *rules_of(backend))
