"""Traits that the C ABI will state of a kernel that need not be built."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from kernelwright.arch import Arch
from kernelwright.codegen.operations.attention import ck_tile, cpu, cutlass
from kernelwright.codegen.operations.attention.arch_section import attention_features
from kernelwright.codegen.operations.attention.rules.structs import Traits
from kernelwright.codegen.operations.attention.spec import AttentionSpec


@dataclass(frozen=True)
class Described:
    """Traits, and what else a backend's descriptors say.

    ``aligned`` is the number of bytes that strides of tensors are multiples of on AMD GPUs; ``dots`` says whether a
    kernel needs a CPU's dot products of bf16.
    """

    traits: Traits
    aligned: int = 1
    dots: bool = False


@functools.lru_cache(maxsize=1 << 16)
def described(spec: AttentionSpec, arch: Arch) -> Described:
    """Describe a kernel of an architecture."""
    if arch.backend == "cpu":
        needed = attention_features(spec.dtype, spec.warp_tile.k0, arch)
        return Described(cpu.traits(spec), dots="avx512_bf16" in needed)
    if arch.backend == "cutlass":
        return Described(cutlass.traits(spec))
    return Described(ck_tile.traits(spec, arch), ck_tile.alignment(spec))
