"""Sets of kernels by name, such as ``essential`` or ``fp16_rcr_compute``, whichever operation has them."""

from __future__ import annotations

from kernelwright.arch import Arch
from kernelwright.codegen.operation import Expansion, Operation, operation, operation_names
from kernelwright.codegen.violations import SpecError, closest


def expand_set(name: object, arch: Arch) -> Expansion:
    """The kernels of a set, in its order, every one legal on ``arch``; and what rules dropped of a preselected set.

    SpecError for an unknown set, EmptyExpansionError (with the reasons) for one that has no kernels for ``arch``.
    """
    return _owner(name).sets.expand(str(name), arch)


def lacking(name: object, arch: Arch) -> tuple[str, ...]:
    """A sentence for each kernel of a set that another set promises to contain and does not; SpecError if unknown."""
    return _owner(name).sets.lacking(str(name), arch)


def set_archs(name: object) -> tuple[str, ...]:
    """The shipped architectures that a set has kernels for, sorted.

    SpecError for an unknown set, EmptyExpansionError (with the reasons) for one that no architecture has kernels for.
    """
    return _owner(name).sets.archs(str(name))


def _owner(name: object) -> Operation:
    operations = [operation(known) for known in operation_names()]
    described = "; ".join(one.sets.help for one in operations if one.sets.names())
    if not isinstance(name, str):
        raise SpecError(f"a set is a name, not {name!r}; allowed: {described}")
    owners = [one for one in operations if name in one.sets.names()]
    if not owners:
        hint = closest(name, (known for one in operations for known in one.sets.names()))
        raise SpecError(f"unknown kernel set {name!r}{hint}; allowed: {described}")
    if len(owners) > 1:
        both = " and ".join(one.name for one in owners)
        raise SpecError(f"several operations have a kernel set {name!r}: {both}; rename one of the sets")
    return owners[0]
