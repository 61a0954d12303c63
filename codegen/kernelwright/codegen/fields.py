"""Types of spec fields that several operations share: extents, padding, activations, stream-K."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, StrictBool

from kernelwright.codegen.c_names import c_enum
from kernelwright.codegen.kernel import Frozen


@c_enum("KW_ACTIVATION_", "kw_activation_name", "kernelwright/epilogue.h")
class Activation(StrEnum):
    """The last step of a fused epilogue; gelu is the erf form, fast_gelu the tanh form.

    ``any``: the kernel reads its whole epilogue from the problem, so it serves every one.
    """

    NONE = "none"
    RELU = "relu"
    GELU = "gelu"
    FAST_GELU = "fast_gelu"
    SILU = "silu"
    SIGMOID = "sigmoid"
    TANH = "tanh"
    ANY = "any"


COMPILED_ACTIVATIONS = tuple(activation for activation in Activation if activation is not Activation.ANY)
"""Those that one kernel has compiled in."""


@c_enum("KW_STREAM_K_", "", "kernelwright/epilogue.h")
class StreamK(StrEnum):
    """How the partial sums of a tile that stream-K cuts are added up, always in the same order.

    Adding them atomically is not offered: the result would depend on which workgroup finishes first.
    """

    NONE = "none"
    LINEAR = "linear"
    TREE = "tree"


MAX_EXTENT = 65535  # keeps names below 240 characters and products of extents within 64 bits


class Extent(Frozen):
    """Three extents along M, N and K."""

    m: int = Field(gt=0, le=MAX_EXTENT, strict=True, description="Extent along M, the rows of A and C.")
    n: int = Field(gt=0, le=MAX_EXTENT, strict=True, description="Extent along N, the columns of B and C.")
    k: int = Field(gt=0, le=MAX_EXTENT, strict=True, description="Extent along K, over which products are summed.")


class Padding(Frozen):
    """True where the kernel handles extents that are no multiple of the tile."""

    m: StrictBool = Field(default=True, description="Whether M may be any number.")
    n: StrictBool = Field(default=True, description="Whether N may be any number.")
    k: StrictBool = Field(default=True, description="Whether K may be any number.")
