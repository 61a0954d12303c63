"""Attention sets by name: ``essential``, ``coverage``, ``release``, and one per receipt, such as ``flash_fwd``."""

from __future__ import annotations

import functools
import importlib.resources
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kernelwright import arch as archs
from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import CONTAINED_SETS, Expansion, KernelSets
from kernelwright.codegen.operations.attention.arch_section import attention_section
from kernelwright.codegen.operations.attention.complete import complete
from kernelwright.codegen.operations.attention.expand import expand_table
from kernelwright.codegen.operations.attention.kinds import Family, OperandTypes
from kernelwright.codegen.operations.attention.receipts import receipts
from kernelwright.codegen.selecting.expand import EmptyExpansionError, Refused
from kernelwright.codegen.selecting.specs import build_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import Violation


class AttentionSets(KernelSets):
    """The sets, as :class:`kernelwright.codegen.operation.KernelSets` describes them."""

    examples = ("essential", "fp32_min")

    @property
    def spellings(self) -> Mapping[str, str]:
        """Names with the prefix by which CK Tile's users know attention."""
        return {f"fmha_{name}": name for name in self.names()}

    def names(self) -> tuple[str, ...]:
        """The written sets, then one for each receipt."""
        return (*CONTAINED_SETS, *receipts())

    def holding(self, values: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
        """The one set that has all kernels of the tables."""
        return ("all",)

    def archs(self, name: str) -> tuple[str, ...]:
        """Return the shipped architectures that a set has kernels for, sorted; EmptyExpansionError if none has."""
        supported = [arch for arch in archs.names() if any(not why for _, why in _members(name, archs.load(arch)))]
        if not supported:
            raise EmptyExpansionError(f"kernel set 'attention:{name}' has no kernels for any architecture")
        return tuple(supported)

    def expand(self, name: str, arch: Arch) -> Expansion:
        """The kernels of a set, each legal; EmptyExpansionError, with the reasons, if it has none for ``arch``."""
        kernels = []
        refused = Refused()
        for kernel, violations in _members(name, arch):
            refused.add(violations)
            if not violations:
                kernels.append(kernel)
        if not kernels:
            why = str(refused) or "\n  the architecture's table has no such kernel"
            raise EmptyExpansionError(f"kernel set 'attention:{name}' has no kernels for {arch.name}:{why}")
        return Expansion(tuple(kernels), dict(sorted(refused.counts.items())))


def _members(name: str, arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
    if "attention" not in arch.operations:
        return iter(())
    if name in CONTAINED_SETS:
        return _listed(name, arch)
    receipt = receipts()[name]
    return expand_table(arch, receipt.keeps, receipt.extended)


def _listed(name: str, arch: Arch) -> Iterator[tuple[Kernel, tuple[Violation, ...]]]:
    """Yield the written kernels that the architecture has a tile for."""
    section = attention_section(arch)
    for raw in (raw for part in CONTAINED_SETS[name] for raw in _written(f"{part}_{arch.backend}.json")):
        if raw.get("arch", arch.name) != arch.name:
            continue
        raw = {name: value for name, value in raw.items() if name != "arch"}
        family, dtype, hdim = Family(raw["family"]), OperandTypes(raw["dtype"]), raw["hdim"]
        if section.rows(family, dtype, (hdim, hdim)):
            kernel = Kernel(arch=arch.name, spec=build_spec(complete({"op": "attention", **raw}, arch)))
            yield kernel, validate(kernel, arch)


@functools.cache
def _written(name: str) -> list[dict[str, Any]]:
    """A set's specs for a backend, none if it has no file; a spec with ``arch`` is for that architecture alone."""
    file = importlib.resources.files("kernelwright.codegen.operations.attention").joinpath("data", name)
    if not file.is_file():
        return []
    raw: list[dict[str, Any]] = json.loads(file.read_text("utf-8"))
    return raw
