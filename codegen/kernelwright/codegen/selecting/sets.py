"""Sets of kernels by name: ``<operation>:<set>``; the operation may be left out where it alone has such a set."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.operation import Expansion, KernelSets, operation, operation_names
from kernelwright.codegen.violations import SpecError, closest


def expand_set(name: object, arch: Arch, op: str | None = None) -> Expansion:
    """Return the kernels of a set in order, each legal on ``arch``; and what rules dropped of a preselected set.

    With ``op``, a name without an operation is a set of that one. SpecError for an unknown set and for a name that
    several operations have, EmptyExpansionError (with the reasons) for a set that has no kernels for ``arch``.
    """
    sets, own = _find(name, op)
    return sets.expand(own, arch)


def missing_kernels(name: object, arch: Arch) -> tuple[str, ...]:
    """Return a sentence for each kernel of a set that another set promises but lacks; SpecError for an unknown set."""
    sets, own = _find(name)
    return sets.missing_kernels(own, arch)


def set_archs(name: object) -> tuple[str, ...]:
    """Return the shipped architectures that a set has kernels for, sorted.

    SpecError for an unknown set, EmptyExpansionError (with the reasons) for one that no architecture has kernels for.
    """
    sets, own = _find(name)
    return sets.archs(own)


def set_names() -> Iterator[str]:
    """Yield every accepted spelling: ``<operation>:<set>`` of all sets, then the names that one operation alone has."""
    bare: dict[str, list[str]] = {}
    for op in operation_names():
        for name, own in _spellings(op).items():
            bare.setdefault(name, []).append(op)
            if name == own:
                yield f"{op}:{name}"
    yield from (name for name, owners in bare.items() if len(owners) == 1)


def _find(name: object, op: str | None = None) -> tuple[KernelSets, str]:
    if not isinstance(name, str):
        raise SpecError(f"a set is a name, not {name!r}; allowed: {_described()}")
    stated, colon, rest = name.partition(":")
    if colon and op not in (None, stated):
        raise SpecError(
            f"{name!r} is no kernel set of {op}; name one of its own, such as {operation(op).sets.examples[0]}"
        )
    owners = [stated] if colon else [op] if op else list(operation_names())
    short = rest if colon else name
    by_owner = {one: _spellings(one)[short] for one in owners if short in _spellings(one)}
    if not by_owner:
        hint = closest(name, set_names())
        raise SpecError(f"unknown kernel set {name!r}{hint}; allowed: {_described()}")
    if len(by_owner) > 1:
        choices = ", ".join(f"{one}:{own}" for one, own in by_owner.items())
        raise SpecError(f"kernel set {name!r} does not say of which operation; allowed: {choices}")
    ((owner, own),) = by_owner.items()
    return operation(owner).sets, own


def _spellings(op: str) -> dict[str, str]:
    """Return the operation's sets by each name that it accepts."""
    sets = operation(op).sets
    return {**sets.spellings, **{name: name for name in sets.names()}}


def _described() -> str:
    described = ((op, operation(op).sets) for op in operation_names())
    return "; ".join(f"{op}:<set> with set {sets.help}" for op, sets in described if sets.names())
