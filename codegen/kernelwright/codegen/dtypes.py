"""Element types and storage orders, as the specs of all operations name them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kernelwright.problems.shared import ITEM_BYTES, DType, MatrixOrder

__all__ = ["ELEMENT_BYTES", "DType", "Layout", "MatrixOrder"]


ELEMENT_BYTES: Mapping[DType, int] = {DType(name): size for name, size in ITEM_BYTES.items()}


class Layout(StrEnum):
    """Storage order of A, B and C, in this order: r is row-major, c is column-major."""

    RCR = "rcr"
    RRR = "rrr"
    CRR = "crr"
    CCR = "ccr"
