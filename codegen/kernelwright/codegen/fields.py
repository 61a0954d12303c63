"""Types of spec fields that several operations share: extents, padding, activations, stream-K."""

from __future__ import annotations

from typing import Any

from pydantic import Field, StrictBool

from kernelwright.codegen.kernel import OMITTED_AT_DEFAULT, Frozen
from kernelwright.problems.shared import Activation, StreamK

__all__ = ["COMPILED_ACTIVATIONS", "MAX_EXTENT", "Activation", "Extent", "Padding", "StreamK", "omitted"]


COMPILED_ACTIVATIONS = tuple(map(Activation, Activation.codes))
"""The activations that one kernel has compiled in."""


MAX_EXTENT = 65535  # keeps names below 240 characters and products of extents within 64 bits


def omitted(default: Any, about: str, **bounds: int) -> Any:
    """Declare a field that canonical JSON leaves out at its default; ``bounds`` (``gt``, ``le``) are those of a number.

    Fields added after an operation's first release are declared so: identities of older kernels stay the same.
    """
    told: dict[str, Any] = {"strict": True, **bounds} if bounds else {}
    return Field(default=default, json_schema_extra=OMITTED_AT_DEFAULT, description=about, **told)


class Extent(Frozen):
    """Three extents along M, N and K."""

    m: int = Field(gt=0, le=MAX_EXTENT, strict=True, description="Extent along M, the rows of A and C.")
    n: int = Field(gt=0, le=MAX_EXTENT, strict=True, description="Extent along N, the columns of B and C.")
    k: int = Field(gt=0, le=MAX_EXTENT, strict=True, description="Extent along K, over which products are summed.")


class Padding(Frozen):
    """True where the kernel handles extents that are not a multiple of the tile."""

    m: StrictBool = Field(default=True, description="Whether M may be any number.")
    n: StrictBool = Field(default=True, description="Whether N may be any number.")
    k: StrictBool = Field(default=True, description="Whether K may be any number.")
