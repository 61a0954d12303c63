"""Convolution's kernel sets: the part of each rule set that the backend of an architecture can build."""

from __future__ import annotations

from collections.abc import Mapping

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Expansion, KernelSets
from kernelwright.codegen.operations.convolution.name import kernel_name
from kernelwright.codegen.operations.convolution.rule_sets import CONTAINED, RULE_SETS, missing, rule_set
from kernelwright.codegen.selecting.expand import EmptyExpansionError, Refused, archs_with
from kernelwright.codegen.selecting.validate import validate


class ConvSets(KernelSets):
    """The sets, as :class:`kernelwright.codegen.operation.KernelSets` describes them."""

    examples = ("default", "essential")

    @property
    def spellings(self) -> Mapping[str, str]:
        """Names with a prefix that distinguishes them from GEMM's sets."""
        return {f"conv_{name}": name for name in RULE_SETS}

    def names(self) -> tuple[str, ...]:
        """Every rule set."""
        return tuple(RULE_SETS)

    def archs(self, name: str) -> tuple[str, ...]:
        """Return the shipped architectures that a set has kernels for, sorted; EmptyExpansionError if none has."""
        return archs_with(lambda arch: self.expand(name, arch))

    def expand(self, name: str, arch: Arch) -> Expansion:
        """Return the kernels of a rule set that the architecture's backend can build, and how many each rule refused.

        EmptyExpansionError, with the reasons, if there are none.
        """
        if "convolution" not in arch.operations:
            raise EmptyExpansionError(
                f"arch {arch.name} has no section operations.convolution, so no kernel of 'convolution:{name}'"
            )
        kernels: list[Kernel] = []
        refused = Refused()
        for spec in rule_set(name, arch):
            kernel = Kernel(arch=arch.name, spec=spec)
            violations = validate(kernel, arch)
            refused.add(violations)
            if not violations:
                kernels.append(kernel)
        if not kernels:
            why = str(refused) or f"\n  it lists nothing for {arch.backend}"
            raise EmptyExpansionError(f"rule set 'convolution:{name}' has no kernels for {arch.name}:{why}")
        return Expansion(tuple(kernels), dict(sorted(refused.counts.items())))

    def missing_kernels(self, name: str, arch: Arch) -> tuple[str, ...]:
        """Return a sentence for each member of a rule set that is missing from a set that must contain it."""
        return tuple(
            f"{kernel_name(spec)} is in convolution:{inner} and not in convolution:{outer} on {arch.name}"
            for inner, outer in CONTAINED
            if inner == name
            for spec in missing(inner, outer, arch)
        )
