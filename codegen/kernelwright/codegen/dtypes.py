"""Element types and storage orders, as specs of every operation name them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class DType(StrEnum):
    """Element types. fp8 is e4m3 and bf8 is e5m2, in the encoding that the architecture's ``fp8_format`` names."""

    FP32 = "fp32"
    FP16 = "fp16"
    BF16 = "bf16"
    FP8 = "fp8"
    BF8 = "bf8"
    INT8 = "int8"
    INT32 = "int32"


ELEMENT_BYTES: Mapping[DType, int] = {
    DType.FP32: 4,
    DType.FP16: 2,
    DType.BF16: 2,
    DType.FP8: 1,
    DType.BF8: 1,
    DType.INT8: 1,
    DType.INT32: 4,
}


class Layout(StrEnum):
    """Storage order of A, B and C, in this order: r is row-major, c is column-major."""

    RCR = "rcr"
    RRR = "rrr"
    CRR = "crr"
    CCR = "ccr"
