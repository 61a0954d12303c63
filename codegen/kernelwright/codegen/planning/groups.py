"""Which objects of a large library are linked together first, so that a change links one group and the whole again."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.codegen.kernel import Kernel

GROUP = 64
"""How many kernels a group has on average: near the square root of 10,000, where both links handle equally many."""


def groups_of(kernels: Sequence[Kernel], size: int = GROUP) -> list[tuple[int, int]]:
    """Groups as ranges ``(first, end)`` of ``kernels``, which are sorted by name; none for up to ``2 * size``.

    A kernel whose identity is a multiple of ``size`` starts a group, so boundaries depend on nothing but the kernel
    behind them: adding, removing or changing one kernel changes its own group alone, two groups if it was or becomes
    the first of one, or if its new name belongs elsewhere.
    """
    if len(kernels) <= 2 * size:
        return []
    starts = [n for n, kernel in enumerate(kernels) if n == 0 or int(kernel.identity[:8], 16) % size == 0]
    return list(zip(starts, [*starts[1:], len(kernels)], strict=True))
