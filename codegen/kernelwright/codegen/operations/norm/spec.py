"""Specs of norms: what a kernel computes, with which types, and how."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.kernel import Kernel, Spec
from kernelwright.problems.norm.description import NormOp


class Kind(StrEnum):
    """The divisor of a row: the root of the mean of its squares; layer norm first subtracts the row's mean."""

    RMS = "rms"
    LAYER = "layer"


class Direction(StrEnum):
    """The result, or the gradients of the operands."""

    FORWARD = "forward"
    BACKWARD = "backward"


class NormSpec(Spec):
    """One kernel of RMS norm or layer norm, which serves any rows, columns, strides, weight, bias and residual."""

    computed: ClassVar[tuple[str, ...]] = ("kind", "direction", "dtype", "dtype_y")
    op: Literal["norm"] = Field(description="The operation that the kernel computes.")
    kind: Kind = Field(description="RMS norm, or layer norm.")
    direction: Direction = Field(
        default=Direction.FORWARD, description="The normalised rows, or the gradients of input, weight and bias."
    )
    dtype: DType = Field(description="Element type of what is normalised; arithmetic is in fp32.")
    dtype_y: DType = Field(
        description="Element type of the result: that of the input, which is the default, or `int8` or `fp8` for one"
        " that is quantised row by row."
    )
    unroll: int = Field(
        default=4, gt=0, le=64, strict=True,
        description="Number of vectors that an iteration along a row handles; GPUs: that a thread keeps.",
    )  # fmt: skip
    rows_per_block: int = Field(
        default=1,
        gt=0,
        le=1024,
        strict=True,
        description="GPUs: number of rows that a workgroup normalises; 1 on CPUs.",
    )
    threads_per_row: int = Field(
        default=1, gt=0, le=1024, strict=True, description="GPUs: number of threads that share a row; 1 on CPUs."
    )
    vector: int = Field(
        default=0, ge=0, le=64, strict=True,
        description="GPUs: number of elements that a thread reads at once; 0 on CPUs, whose registers say it.",
    )  # fmt: skip

    @property
    def variant(self) -> str:
        """The variant, such as ``rms_forward``."""
        return f"{self.kind}_{self.direction}"


OPS = {
    (Kind.RMS, Direction.FORWARD): NormOp.RMS_NORM,
    (Kind.LAYER, Direction.FORWARD): NormOp.LAYER_NORM,
    (Kind.RMS, Direction.BACKWARD): NormOp.RMS_NORM_BACKWARD,
    (Kind.LAYER, Direction.BACKWARD): NormOp.LAYER_NORM_BACKWARD,
}
"""The operations that kernels serve."""


def norm_spec(kernel: Kernel) -> NormSpec:
    """Return the spec of a norm kernel; TypeError for a kernel of another operation."""
    if not isinstance(kernel.spec, NormSpec):
        raise TypeError(f"{kernel.name} is a kernel of {kernel.spec.op}, not a norm")
    return kernel.spec
