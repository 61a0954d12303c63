"""What our CPU norm kernels cannot do."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.operations.norm.spec import NormSpec
from kernelwright.codegen.violations import Violation, rules

UNROLLS = (1, 2, 4)


def check_unroll(spec: NormSpec, arch: Arch) -> Iterator[Violation]:
    """Each vector of an iteration has sums of its own, up to three of gradients, which 16 registers must hold."""
    if spec.unroll not in UNROLLS:
        nearest = min(UNROLLS, key=lambda one: abs(one - spec.unroll))
        why = "sums of so many vectors are not compiled, or do not fit into registers"
        yield Violation("norm_cpu.unroll", "unroll", str(spec.unroll), why, ", ".join(map(str, UNROLLS)), str(nearest))


def check_tile(spec: NormSpec, arch: Arch) -> Iterator[Violation]:
    """Threads take whole rows, and registers say how many elements a vector has."""
    for field, only in (("rows_per_block", 1), ("threads_per_row", 1), ("vector", 0)):
        if (given := getattr(spec, field)) != only:
            yield Violation("norm_cpu.tile", field, str(given), "it is of GPUs", str(only), str(only))


RULES = rules(
    "norm_cpu.",
    (check_unroll, check_tile),
)
"""Rules that the CPU backend adds to the common ones."""
