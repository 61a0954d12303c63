"""What our CPU kernels of norms cannot do."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.operations.norm.spec import NormSpec
from kernelwright.codegen.violations import Rule, Violation

UNROLLS = (1, 2, 4)


def check_unroll(spec: NormSpec, arch: Arch) -> Iterator[Violation]:
    """Each vector of an iteration has sums of its own, up to three of gradients, which 16 registers must hold."""
    if spec.unroll not in UNROLLS:
        nearest = min(UNROLLS, key=lambda one: abs(one - spec.unroll))
        why = "sums of so many vectors are not compiled, or do not fit into registers"
        yield Violation("norm_cpu.unroll", "unroll", str(spec.unroll), why, ", ".join(map(str, UNROLLS)), str(nearest))


RULES: tuple[Rule, ...] = (
    Rule("norm_cpu.unroll", " ".join((check_unroll.__doc__ or "").split()), check_unroll),
)  # fmt: skip
"""Rules that the CPU backend adds to the common ones."""
