"""Validation of a kernel on its architecture: applies every rule and returns every reason."""

from __future__ import annotations

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.violations import Violation


def validate(kernel: Kernel, arch: Arch) -> tuple[Violation, ...]:
    """Return why ``kernel`` cannot be built for ``arch``; empty if it can. Never raises for a well-formed kernel."""
    spec = kernel.spec
    if kernel.arch != arch.name:
        why = "the kernel is for another arch"
        return (Violation(f"{spec.op}.arch", "arch", kernel.arch, why, arch.name, arch.name),)
    rules = operation(spec.op).rules(arch.backend)
    return tuple(violation for rule in rules for violation in rule.check(spec, arch))
