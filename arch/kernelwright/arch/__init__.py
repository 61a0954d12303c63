"""Architectures: hardware figures, limits on kernels, and lookup by name or from a JSON file.

A model is read from one JSON file per architecture and validated; it cannot be changed afterwards. Sizes are in bytes
or elements as the field name says, clock rates in GHz, memory bandwidth in GB/s.
"""

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
