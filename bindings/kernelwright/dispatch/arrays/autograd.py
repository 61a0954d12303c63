"""Tells torch's autograd what kernels write: it sees no launch, and would use saved tensors that have changed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from kernelwright.dispatch.arrays.view import is_torch

Notice = Callable[[tuple[Any, ...]], None]


def write_notice(operands: tuple[Any, ...], outputs: int = 1, bound: bool = False) -> Notice | None:
    """A function that counts one more version of each torch tensor among the last ``outputs`` operands given to it.

    ``backward()`` then refuses to use such a tensor if it was saved before, as it does after torch's own in-place
    operations. None where no output of ``operands`` is a torch tensor, and for calls that were ``bound`` under
    ``torch.no_grad()``, which asks for the shortest call.
    """
    written = [at for at in range(-outputs, 0) if is_torch(operands[at])]
    if not written or (bound and not sys.modules["torch"].is_grad_enabled()):
        return None
    increment = sys.modules["torch"].autograd.graph.increment_version
    if written == [-1]:
        return lambda given: increment(given[-1])

    def notice(given: tuple[Any, ...]) -> None:
        for at in written:
            increment(given[at])

    return notice
