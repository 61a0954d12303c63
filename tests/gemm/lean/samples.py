"""Which kernels stand for whole sets: all that ship, and one of each kind of every rule set and receipt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.attention.receipts import receipts
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.operations.convolution.rule_sets import RULE_SETS
from kernelwright.codegen.selecting.expand import EmptyExpansionError
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError

SHIPPED = ("gemm:essential", "convolution:essential", "attention:essential")
SAMPLED = (*(f"convolution:{name}" for name in RULE_SETS), *(f"attention:{receipt}" for receipt in receipts()))


def members(name: str, arch: str) -> list[Kernel]:
    """The kernels of a set; none where the architecture has none."""
    try:
        return list(expand_set(name, load(arch)).kernels)
    except EmptyExpansionError:
        return []


def is_built(kernel: Kernel) -> bool:
    """Does the backend build it? Some members of receipts are compiled, but no library has a launcher for them."""
    try:
        arch = load(kernel.arch)
        operation(kernel.spec.op).context(kernel, arch, arch.backend)
    except SpecError:
        return False
    return True


def shipped(arch: str) -> list[Kernel]:
    """The kernels of the sets that libraries ship."""
    return [kernel for name in SHIPPED for kernel in members(name, arch) if is_built(kernel)]


def kind(kernel: Kernel) -> tuple[str, ...]:
    """What makes kernels of an operation other programs than their neighbours: a sample has one of each kind."""
    spec = kernel.spec
    fields = ("family",) if isinstance(spec, AttentionSpec) else ("direction", "dtype", "scheduler")
    return tuple(str(getattr(spec, field)) for field in ("op", "pipeline", *fields))


def one_of_each_kind(arch: str, sets: Iterable[str] = SAMPLED) -> list[Kernel]:
    """Kernels such that every kind of every set has one that is a member of the set; the same ones each time.

    Small sets choose first, and prefer what other sets hold too: a kernel counts for every set that it is a member of.
    """
    every = sorted((members(name, arch) for name in sets), key=len)
    held = Counter(kernel.identity for kernels in every for kernel in kernels)
    chosen: dict[str, Kernel] = {}
    for kernels in every:
        covered = {kind(kernel) for kernel in kernels if kernel.identity in chosen}
        for kernel in sorted(kernels, key=lambda one: (-held[one.identity], sha256(one.name.encode()).digest())):
            if kind(kernel) not in covered and is_built(kernel):
                covered.add(kind(kernel))
                chosen[kernel.identity] = kernel
    return sorted(chosen.values(), key=lambda kernel: kernel.name)
