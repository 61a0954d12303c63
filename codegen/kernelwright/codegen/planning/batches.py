"""The compiles of a plan that are done together when kernels are compiled at run time."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from itertools import groupby

from kernelwright.arch import Arch
from kernelwright.codegen.actions import Action, KernelActions
from kernelwright.codegen.backends.base import Backend
from kernelwright.codegen.batching.batch import Batch, Joined, sizes
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.planning.render import header_path


def batches(
    kernels: Sequence[Kernel],
    arch: Arch,
    roads: Sequence[KernelActions],
    backend: Backend,
    missing: Collection[Action],
    jobs: int,
) -> list[Batch]:
    """Return batches of the kernels whose compile, the first of their actions, is among the ``missing`` ones.

    Kernels are of ``arch`` and sorted by name: neighbours share most of what the compiler instantiates. ``jobs``
    commands run at once. Empty where the backend's compiles cannot be joined.
    """
    compiles = {road.actions[0]: kernel for kernel, road in zip(kernels, roads, strict=True)}

    def join(members: Sequence[Action]) -> Joined | None:
        own = [compiles[member] for member in members]
        return backend.join(own, arch, [header_path(kernel) for kernel in own])

    def operation(member: Action) -> str:
        return compiles[member].spec.op

    batched = []
    waiting = [action for action in compiles if action in missing]
    for _, of_one in groupby(sorted(waiting, key=operation), key=operation):
        left = list(of_one)
        for size in sizes(len(left), jobs):
            members, left = tuple(left[:size]), left[size:]
            joined = join(members) if size > 1 else None
            if joined is not None:
                batched.append(Batch(members, join, joined.action.memory_mb))
    return batched
