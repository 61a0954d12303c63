"""Kernel sets, expanded once for all tests of a process: the largest take seconds."""

from __future__ import annotations

from functools import cache

from kernelwright.arch import Arch, load
from kernelwright.codegen.operation import Expansion
from kernelwright.codegen.selecting import sets


@cache
def _expanded(name: str, arch: str) -> Expansion:
    return sets.expand_set(name, load(arch))


def expand_set(name: str, arch: Arch) -> Expansion:
    """Return :func:`kernelwright.codegen.selecting.sets.expand_set` for a shipped architecture."""
    return _expanded(name, arch.name)
