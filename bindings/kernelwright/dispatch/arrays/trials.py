"""Trials of torch's private interfaces, run with the first dispatcher if torch is imported by then, so no call waits.

Otherwise the first call runs them; a fork waits until they end, see :mod:`forks`.
"""

from __future__ import annotations

import sys

from kernelwright.dispatch.arrays.autograd import version_counter
from kernelwright.dispatch.arrays.guards import compiler_guard


def try_torch() -> None:
    """Run the trials if torch has been imported: a millisecond, once."""
    torch = sys.modules.get("torch")
    spec = getattr(torch, "__spec__", None)
    if torch is not None and spec is not None and not getattr(spec, "_initializing", False):
        compiler_guard()
        version_counter(torch)
