"""Row norms as the Python bindings know an operation: structs, problem, binder and plan."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.operation import Operation, register
from kernelwright.dispatch.core.plan import NativePlan, OperationPlan

OP_ROW_NORM = 65540


class RowNormStruct(ctypes.Structure):
    """``kw_row_norm_problem``."""

    _fields_ = (("head", native.ProblemHead), ("rows", ctypes.c_int64), ("columns", ctypes.c_int64))


class RowNormArgs(ctypes.Structure):
    """``kw_row_norm_args``."""

    _fields_ = (
        *(("struct_size", ctypes.c_uint32), ("reserved", ctypes.c_uint32)),
        *(("x", ctypes.c_void_p), ("y", ctypes.c_void_p)),
    )


@dataclass(frozen=True)
class RowNormProblem:
    """The norm of each row of a (rows, columns) matrix of fp32."""

    rows: int
    columns: int

    @property
    def flops(self) -> int:
        return 2 * self.rows * self.columns

    def native(self) -> RowNormStruct:
        size = ctypes.sizeof(RowNormStruct)
        return RowNormStruct(native.ProblemHead(size, OP_ROW_NORM), self.rows, self.columns)

    @classmethod
    def from_native(cls, address: int) -> RowNormProblem:
        struct = RowNormStruct.from_address(address)
        return cls(struct.rows, struct.columns)


class RowNormBinder:
    """Takes x (rows, columns) and y (rows,), contiguous NumPy arrays of fp32."""

    brief = True

    def __init__(self, problem: RowNormProblem) -> None:
        self.shapes = ((problem.rows, problem.columns), (problem.rows,))

    def new_args(self) -> RowNormArgs:
        return RowNormArgs(ctypes.sizeof(RowNormArgs))

    def check(self, operands: Sequence[Any], stream: int | None) -> Sequence[Any]:
        for name, array, shape in zip(self.names(), operands, self.shapes, strict=True):
            if array.shape != shape or array.dtype != np.float32 or not array.flags.c_contiguous:
                raise ArrayError(f"{name} is {array.dtype} {array.shape}; allowed: contiguous float32 {shape}")
        return [_View(array.ctypes.data) for array in operands]

    def names(self) -> Sequence[str]:
        return ("x", "y")

    def guard(self, operands: Sequence[Any]) -> None:
        return None

    def write_notice(self, operands: Sequence[Any], bound: bool = False) -> None:
        return None

    def bind(self, args: RowNormArgs, addresses: Sequence[Any]) -> bool:
        self.write(args, addresses)
        return True

    def write(self, args: RowNormArgs, addresses: Sequence[Any]) -> None:
        args.x, args.y = addresses

    def regions(self, args: RowNormArgs) -> list[Any]:
        return []


@dataclass(frozen=True)
class _View:
    pointer: int
    dtype: str = "fp32"
    fnuz: bool = False
    family: str = "numpy"


class RowNormPlan(OperationPlan[RowNormProblem]):
    """``plan(x, y)`` writes the norm of each row of x to y."""

    __slots__ = ()

    def __init__(self, problem: RowNormProblem, made: NativePlan) -> None:
        super().__init__(problem, made, RowNormBinder(problem))

    def __call__(self, x: Any, y: Any) -> Any:
        self.launch((x, y), None, None)
        return y


ROW_NORM = register(Operation("row norm", OP_ROW_NORM, RowNormProblem, RowNormPlan, RowNormProblem.from_native))
