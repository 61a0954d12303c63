"""Tell torch's autograd what kernels write: autograd sees no launch and would use saved tensors that have changed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from kernelwright.dispatch.arrays.forks import Undivided
from kernelwright.dispatch.arrays.view import is_torch

Notice = Callable[[tuple[Any, ...]], None]


def write_notice(operands: tuple[Any, ...], outputs: int = 1, bound: bool = False) -> Notice | None:
    """A function that bumps the version of each torch tensor among the last ``outputs`` operands given to it.

    ``backward()`` then refuses to use such a tensor if it was saved before, as it does after torch's own in-place
    operations. A tensor made under ``torch.inference_mode()`` has no version, and autograd never saves it; one notice
    serves both kinds, because guards may mistake one for the other. Returns None if no output of ``operands`` is a
    torch tensor, and for calls ``bound`` under ``torch.no_grad()`` or ``torch.inference_mode()``, which ask for the
    shortest call.
    """
    written = [at for at in range(-outputs, 0) if is_torch(operands[at])]
    if not written or (bound and not sys.modules["torch"].is_grad_enabled()):
        return None
    increment = version_counter(sys.modules["torch"])
    if written == [-1]:
        return lambda given: increment((given[-1],))
    return lambda given: increment([given[at] for at in written])


@Undivided
def version_counter(torch: Any) -> Callable[[Sequence[Any]], None]:
    """Return a function that counts one more version of each tensor that has one.

    It is the private function that torch's public one ends in, in a third of its time, if it exists and passes a trial.
    The trial gives the same answer in every mode of the calling thread, so its result serves all threads.
    """
    public = torch.autograd.graph.increment_version

    def each(tensors: Sequence[Any]) -> None:
        for tensor in tensors:
            if not tensor.is_inference():
                public(tensor)

    try:
        increment: Callable[[Sequence[Any]], None] = torch._C._increment_version
        with torch.inference_mode():
            without = torch.zeros(1, device="cpu")
        with torch.inference_mode(False):
            one = torch.zeros(1, device="cpu")
        increment((without, one))
        return increment if one._version == 1 else each
    except (AttributeError, TypeError, RuntimeError):  # a private interface that has changed
        return each
