"""Rules that operations share."""

from __future__ import annotations

from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.formulas.refusals import Refusal
from kernelwright.codegen.formulas.widths import dtype_name

HEADER = "kernelwright/checks.h"
PREFIX = "kw"


def dtype_matches(name: str, asked: DType | None, built: DType | None) -> Refusal:
    """The kernel is built for another type of the operand; name is that of the problem's field."""
    if asked == built:
        return None
    return f"{name} is {dtype_name(asked)}, this kernel serves {dtype_name(built)}"
