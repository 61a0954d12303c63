"""The interface that the core requires of an operation, and the registered operations."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.errors import ProblemError
from kernelwright.problems import reading

if TYPE_CHECKING:
    from kernelwright.dispatch.core.plan import NativePlan, OperationPlan


class Problem(Protocol):
    """A computation, independent of the kernel that performs it. Hashable: plans are cached by problem."""

    @property
    def flops(self) -> int:
        """Multiplications and additions."""

    def native(self) -> ctypes.Structure:
        """The C struct of the problem, which starts with its size and the ``kw_op`` code of its operation."""

    def __hash__(self) -> int:
        """Equal problems share a plan."""


@dataclass(frozen=True)
class Operation:
    """One operation of the C ABI.

    :ivar name: its name, such as ``gemm``.
    :ivar code: its ``kw_op`` code.
    :ivar problem: the Python type of its problems.
    :ivar plan: makes the plan of a problem from a native plan.
    :ivar from_native: reads the C struct of a problem at an address.
    :ivar recorded: name of its problems in traces, by default its name; operations with one problem type share it.
    :ivar asked: fields, with their values, that a kernel's spec must have to serve a problem, without those that a
        given spec serves anyway: :class:`NoKernelError` ranks the nearest kernels by them.
    """

    name: str
    code: int
    problem: type[Any]
    plan: Callable[[Any, NativePlan], OperationPlan[Any]]
    from_native: Callable[[int], Any]
    recorded: str = ""
    asked: Callable[[Any, Mapping[str, Any]], Mapping[str, Any]] | None = None


fewest_fields = reading.fewest_fields

_BY_CODE: dict[int, Operation] = {}
_BY_PROBLEM: dict[type[Any], Operation] = {}


def register(operation: Operation) -> Operation:
    """Register an operation with every dispatcher of the process. Raises ValueError if its code is taken by another."""
    known = _BY_CODE.setdefault(operation.code, operation)
    if known != operation:
        raise ValueError(f"operation {operation.name} has code {operation.code}, which {known.name} has; take another")
    return _BY_PROBLEM.setdefault(operation.problem, known)


def of_problem(problem: object) -> Operation:
    """The operation of a problem. Raises ProblemError if ``problem`` is not a problem of a registered operation."""
    for kind in type(problem).__mro__:
        if kind in _BY_PROBLEM:
            return _BY_PROBLEM[kind]
    allowed = ", ".join(sorted(kind.__name__ for kind in _BY_PROBLEM))
    raise ProblemError(f"problem is a {type(problem).__name__}; allowed: {allowed}")


def from_native(address: int) -> Any:
    """Read the Python problem from the C struct at an address."""
    return _BY_CODE[native.ProblemHead.from_address(address).op].from_native(address)
