from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import pytest

from kernelwright.dispatch import GemmProblem, ProblemError
from kernelwright.dispatch.core import native, operation
from kernelwright.dispatch.core.operation import Operation
from kernelwright.dispatch.operations.gemm import GEMM

CODE = 1 << 16  # codes from here on belong to operations that are registered from outside


class Sum:
    """A problem of an operation that the package does not have."""

    flops = 1

    def native(self) -> native.ProblemHead:
        return native.ProblemHead(ctypes.sizeof(native.ProblemHead), CODE)


class SpecialSum(Sum):
    pass


@pytest.fixture
def made_up(monkeypatch: pytest.MonkeyPatch) -> Iterator[Operation]:
    for registry in ("_BY_CODE", "_BY_PROBLEM"):
        monkeypatch.setattr(operation, registry, dict(getattr(operation, registry)))

    def plan(*_: Any) -> Any:
        raise NotImplementedError

    yield operation.register(Operation("sum", CODE, Sum, plan, lambda address: Sum()))


def test_operations_are_found_by_problem_and_by_code(made_up: Operation) -> None:
    assert operation.of_problem(Sum()) is operation.of_problem(SpecialSum()) is made_up
    assert operation.of_problem(GemmProblem(1, 2, 3)) is GEMM
    struct = Sum().native()
    assert isinstance(operation.from_native(ctypes.addressof(struct)), Sum)
    assert operation.register(made_up) is made_up  # once more


def test_a_code_belongs_to_one_operation(made_up: Operation) -> None:
    with pytest.raises(ValueError, match="operation other has code 1, which gemm has; take another"):
        operation.register(Operation("other", GEMM.code, Sum, made_up.plan, made_up.from_native))


def test_unknown_problems_are_refused() -> None:
    with pytest.raises(ProblemError, match="problem is a Sum; allowed: AppendProblem, AttentionProblem, ConvProblem"):
        operation.of_problem(Sum())
