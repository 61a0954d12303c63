"""Bind arrays to a grouped GEMM plan: check them and write their addresses into ``kw_grouped_gemm_args``.

Operands stand in the order A of every group, B of every group, C of every group, result of every group; every C is None
if beta is 0.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

from kernelwright.dispatch.arrays.autograd import Notice, write_notice
from kernelwright.dispatch.arrays.guards import Addresses, Guard, Operands, guard_of
from kernelwright.dispatch.arrays.streams import launch_stream
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.simulated import Region
from kernelwright.dispatch.operations.gemm.aliasing import check_group_aliasing
from kernelwright.dispatch.operations.gemm.checks import check_operand
from kernelwright.dispatch.operations.gemm.operand import Operand, operand
from kernelwright.problems.gemm.grouped_problem import GroupedGemmProblem
from kernelwright.problems.gemm.structs import GroupedGemmArgs

_LISTS = ("a", "b", "c", "out")


class _ThreadArgs(GroupedGemmArgs):
    """The argument struct of one thread with the lists of addresses that it points to."""

    lists: list[Any]


class GroupedBinder:
    """Binds arrays to the plan of one problem."""

    __slots__ = ("_bytes", "_groups", "_memory", "_names", "_pack", "_problem", "brief")

    def __init__(self, problem: GroupedGemmProblem, memory: str) -> None:
        """``memory`` is the device that holds the arrays."""
        self._problem = problem
        self._memory = memory
        self._groups = problem.native().groups
        count = len(problem.groups)
        self._names = [f"{name}[{number}]" for name in _LISTS for number in range(count)]
        self._pack = struct.Struct(f"@{count}P").pack_into
        self._bytes = [each.spans for each in problem.problems]
        self.brief = False

    def new_args(self) -> GroupedGemmArgs:
        """See :class:`Binder`."""
        count = len(self._problem.groups)
        lists = [(ctypes.c_void_p * count)() for _ in _LISTS]
        a, b, c, d = (ctypes.cast(one, ctypes.POINTER(ctypes.c_void_p)) for one in lists)
        given_c = c if self._problem.beta != 0 else None
        args = _ThreadArgs(ctypes.sizeof(GroupedGemmArgs), 0, count, self._groups, a, b, given_c, d)
        args.lists = lists
        return args

    def names(self) -> Sequence[str]:
        """See :class:`Binder`."""
        return self._names

    def guard(self, operands: Operands) -> Guard | None:
        """See :class:`Binder`."""
        return guard_of(operands, outputs=len(self._problem.groups))

    def write_notice(self, operands: Operands, bound: bool = False) -> Notice | None:
        """See :class:`Binder`."""
        return write_notice(operands, len(self._problem.groups), bound)

    def check(self, operands: Operands, stream: int | None) -> Sequence[Operand | None]:
        """See :class:`Binder`."""
        count, views = len(self._problem.groups), []
        stream = launch_stream(operands, stream, self._memory)
        for shown, at in zip(self._names, range(4 * count), strict=True):
            array, name, problem = operands[at], _LISTS[at // count], self._problem.problems[at % count]
            if array is None and name != "c":
                raise ArrayError(f"{shown} is None; allowed: an array for each of a, b and outs")
            view = None if array is None else operand(array, shown, stream)
            if view is not None:
                check_operand(shown, name, view, problem, self._memory)
            views.append(view)
        check_views(views)
        return views

    def bind(self, args: Any, addresses: Addresses) -> bool:
        """See :class:`Binder`."""
        count = len(self._bytes)
        spans = []  # first byte, byte behind the last, whether it is a result
        for number, (bytes_a, bytes_b, bytes_d) in enumerate(self._bytes):
            a, b, c, out = (addresses[count * index + number] for index in range(4))
            spans += [(a, a + bytes_a, False), (b, b + bytes_b, False), (out, out + bytes_d, True)]
            if c is not None and c != out:
                spans.append((c, c + bytes_d, False))
        spans.sort()
        end = end_of_results = 0  # over all spans so far, and over the results among them
        for begin, stop, is_result in spans:
            if begin < (end if is_result else end_of_results) and begin < stop:
                return False
            end = max(end, stop)
            if is_result:
                end_of_results = max(end_of_results, stop)
        self.write(args, addresses)
        return True

    def write(self, args: Any, addresses: Addresses) -> None:
        """See :class:`Binder`."""
        count = len(self._bytes)
        for index, one in enumerate(args.lists):
            self._pack(one, 0, *[address or 0 for address in addresses[count * index : count * (index + 1)]])

    def regions(self, args: GroupedGemmArgs) -> list[Region]:
        """See :class:`Binder`."""
        listed = []
        for number, (bytes_a, bytes_b, bytes_d) in enumerate(self._bytes):
            listed.append(Region(args.a[number], bytes_a, False, f"A{number}"))
            listed.append(Region(args.b[number], bytes_b, False, f"B{number}"))
            listed.append(Region(args.d[number], bytes_d, True, f"D{number}"))
            if args.c and args.c[number] != args.d[number]:
                listed.append(Region(args.c[number], bytes_d, False, f"C{number}"))
        return listed


def check_views(views: Sequence[Operand | None]) -> None:
    """Raise ArrayError if a result shares memory with an operand other than its own C."""
    count = len(views) // len(_LISTS)
    lists = {name: views[count * index : count * (index + 1)] for index, name in enumerate(_LISTS)}
    check_group_aliasing({name: [view for view in group if view is not None] for name, group in lists.items()})
