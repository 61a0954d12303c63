"""Trials of torch's private interfaces, made before the first call, in whose midst a process may fork.

They run operators of torch, which initialise themselves when they are first used: a child that is forked meanwhile
waits for ever for the thread that did so in its parent.
"""

from __future__ import annotations

import sys

from kernelwright.dispatch.arrays.autograd import version_counter
from kernelwright.dispatch.arrays.guards import compiler_guard


def try_torch() -> None:
    """Make them where torch has been imported: a millisecond, once."""
    torch = sys.modules.get("torch")
    spec = getattr(torch, "__spec__", None)
    if torch is not None and spec is not None and not getattr(spec, "_initializing", False):
        compiler_guard()
        version_counter(torch)
