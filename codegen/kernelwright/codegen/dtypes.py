"""Element types and storage orders, as specs of every operation name them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kernelwright.codegen.c_names import c_enum
from kernelwright.problems.shared import ITEM_BYTES


@c_enum("KW_", "kw_dtype_name", "kernelwright/abi.h")
class DType(StrEnum):
    """Element types. fp8 is e4m3 and bf8 is e5m2, in the encoding that the architecture's ``fp8_format`` names."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    BF8 = "bf8"
    INT8 = "int8"
    INT32 = "int32"


ELEMENT_BYTES: Mapping[DType, int] = {DType(name): size for name, size in ITEM_BYTES.items()}


@c_enum("KW_", "kw_layout_name", "kernelwright/abi.h")
class MatrixOrder(StrEnum):
    """Storage order of one matrix."""

    ROW_MAJOR = "row-major"
    COL_MAJOR = "column-major"


class Layout(StrEnum):
    """Storage order of A, B and C, in this order: r is row-major, c is column-major."""

    RCR = "rcr"
    RRR = "rrr"
    CRR = "crr"
    CCR = "ccr"
