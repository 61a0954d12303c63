"""Architectures: their numbers, their limits, and how to look them up."""

from kernelwright.arch.choices import Choices, ChoicesField, Triple, Triples
from kernelwright.arch.model import Arch, ArchError, ComputeUnit, load, load_file, names, register, unknown

__all__ = [
    "Arch",
    "ArchError",
    "Choices",
    "ChoicesField",
    "ComputeUnit",
    "Triple",
    "Triples",
    "load",
    "load_file",
    "names",
    "register",
    "unknown",
]
