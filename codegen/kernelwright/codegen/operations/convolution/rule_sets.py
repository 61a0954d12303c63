"""The rule sets of convolution by name, and which specs belong to each on an architecture.

A spec belongs to a set if the set lists it and the rules of the operation hold on the architecture. A backend may have
further rules: what it cannot build is in the rule set, but is no kernel (see :mod:`.sets`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from kernelwright.arch import Arch
from kernelwright.codegen.operation import CONTAINED_SETS
from kernelwright.codegen.operations.convolution.constraints import common
from kernelwright.codegen.operations.convolution.full_set import full_specs
from kernelwright.codegen.operations.convolution.instances import FILES, read_instances
from kernelwright.codegen.operations.convolution.samples import one_in_five, smallest
from kernelwright.codegen.operations.convolution.spec import GroupedConvSpec

RULE_SETS: Mapping[str, str] = MappingProxyType(
    {
        "default": "a few tiles for each direction: the set that needs no knowledge",
        "essential": "at most four kernels for each direction and dtype: small to build",
        "coverage": "essential, and what else public models compute: docs/coverage.md",
        "release": "what is shipped: coverage, and the fewest kernels that are fastest on measured problems",
        "tiny": "one kernel of each kind, for the quickest test",
        "tests": "what tests of every kind of problem need",
        "full_tests": "every fifth kernel of full, and one of each kind",
        "profiler": "what searching for the fastest kernel of a problem tries",
        "full": "all curated tiles with all that goes with them",
    }
)
"""The rule sets and their purposes."""

CONTAINED: tuple[tuple[str, str], ...] = (
    ("profiler", "full"),
    ("tests", "full"),
    ("full_tests", "full"),
    ("tiny", "full_tests"),
)
"""Pairs of sets: on every architecture, each spec of the first is also in the second."""


def rule_set(name: str, arch: Arch) -> tuple[GroupedConvSpec, ...]:
    """Return the specs of a set on an architecture, each once, in set order; KeyError for an unknown name."""
    if name not in RULE_SETS:
        raise KeyError(name)
    if arch.backend == "ck_tile" and name == "full":
        return _full(arch)
    if arch.backend == "ck_tile" and name == "full_tests":
        return one_in_five(_full(arch))
    if arch.backend == "ck_tile" and name == "tiny":
        return smallest(one_in_five(_full(arch)))
    parts = CONTAINED_SETS.get(name, (name,))
    specs = (
        read_instances(arch.name, part, file) or read_instances(arch.backend, part, file)
        for part in parts
        for file in FILES
    )
    return _legal((spec for part in specs for spec in part), arch)


def missing(inner: str, outer: str, arch: Arch) -> tuple[GroupedConvSpec, ...]:
    """Return the specs of a set that another one lacks; none where it is contained."""
    known = set(rule_set(outer, arch))
    return tuple(spec for spec in rule_set(inner, arch) if spec not in known)


_known: dict[str, tuple[Arch, tuple[GroupedConvSpec, ...]]] = {}  # by architecture


def _full(arch: Arch) -> tuple[GroupedConvSpec, ...]:
    before = _known.get(arch.name)
    if before is None or before[0] is not arch:
        _known[arch.name] = before = (arch, _legal(_candidates(), arch))
    return before[1]


@functools.cache
def _candidates() -> tuple[GroupedConvSpec, ...]:
    return tuple(full_specs())


def _legal(specs: Iterable[GroupedConvSpec], arch: Arch) -> tuple[GroupedConvSpec, ...]:
    return tuple(dict.fromkeys(spec for spec in specs if not any(_broken(spec, arch))))


def _broken(spec: GroupedConvSpec, arch: Arch) -> Iterator[bool]:
    return (True for rule in common.RULES for _ in rule.check(spec, arch))
