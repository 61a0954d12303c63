"""Architectures: their numbers, their limits, and how to look them up."""

from kernelwright.arch.model import (
    Arch,
    ArchError,
    Choices,
    PipelineLimits,
    Triple,
    load,
    load_file,
    names,
    register,
    unknown,
)

__all__ = [
    "Arch",
    "ArchError",
    "Choices",
    "PipelineLimits",
    "Triple",
    "load",
    "load_file",
    "names",
    "register",
    "unknown",
]
