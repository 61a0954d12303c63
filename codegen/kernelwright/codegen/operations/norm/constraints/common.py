"""Rules that hold for every norm: which types go together."""

from __future__ import annotations

from collections.abc import Iterator

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import DType
from kernelwright.codegen.operations.norm.spec import Direction, NormSpec
from kernelwright.codegen.violations import Violation, rules
from kernelwright.problems.norm import problem
from kernelwright.problems.norm.description import LARGEST

DTYPES = tuple(map(DType, problem.DTYPES))
"""Element types that can be normalised."""
RESULTS = tuple(map(DType, LARGEST))
"""Element types of quantised results."""


def check_dtype(spec: NormSpec, arch: Arch) -> Iterator[Violation]:
    """What is normalised is fp32, fp16 or bf16."""
    if spec.dtype not in DTYPES:
        why = "rows of it are not normalised"
        yield Violation("norm.dtype", "dtype", spec.dtype, why, ", ".join(DTYPES), str(DType.FP16))


def check_result(spec: NormSpec, arch: Arch) -> Iterator[Violation]:
    """A result has the type of the input, or is quantised to int8 or fp8; gradients are not quantised."""
    allowed = (spec.dtype, *RESULTS) if spec.direction is Direction.FORWARD else (spec.dtype,)
    if spec.dtype_y not in allowed:
        why = f"{spec.direction} of {spec.dtype} does not write it"
        yield Violation("norm.result", "dtype_y", spec.dtype_y, why, ", ".join(allowed), str(spec.dtype))


RULES = rules(
    "norm.",
    (check_dtype, check_result),
)
"""Rules of every backend."""
