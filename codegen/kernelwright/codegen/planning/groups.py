"""Groups of a large library's objects that are linked first, so that a change relinks one group and the whole."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.codegen.kernel import Kernel

GROUP = 64
"""Average kernels per group: near the square root of 10,000, where both links handle equally many."""


def groups_of(kernels: Sequence[Kernel], size: int = GROUP) -> list[tuple[int, int]]:
    """Return groups as ranges ``(first, end)`` of ``kernels``, which are sorted by name; none for up to ``2 * size``.

    A kernel whose identity is a multiple of ``size`` starts a group, so a boundary depends only on the kernel after it:
    adding, removing or changing one kernel changes its own group alone, or two groups if it was or becomes the first of
    one, or if its new name belongs elsewhere.
    """
    if len(kernels) <= 2 * size:
        return []
    starts = [n for n, kernel in enumerate(kernels) if n == 0 or int(kernel.identity[:8], 16) % size == 0]
    return list(zip(starts, [*starts[1:], len(kernels)], strict=True))
