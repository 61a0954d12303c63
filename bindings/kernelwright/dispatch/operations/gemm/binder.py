"""Bind arrays to a GEMM plan: check them and write their addresses into ``kw_gemm_args``.

Operands stand in the order A, B, C, D tensors, result; C is None if beta is 0.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kernelwright.dispatch.arrays.binder import ArrayBinder
from kernelwright.dispatch.arrays.guards import Addresses, Operands
from kernelwright.dispatch.arrays.streams import launch_stream
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.simulated import Region
from kernelwright.dispatch.operations.gemm.aliasing import check_aliasing
from kernelwright.dispatch.operations.gemm.checks import check_d_operand, check_operand
from kernelwright.dispatch.operations.gemm.operand import Operand, d_operand, operand
from kernelwright.problems.gemm.description import MAX_D
from kernelwright.problems.gemm.problem import GemmProblem
from kernelwright.problems.gemm.structs import GemmArgs

_BRIEF_WORK = 1 << 18  # multiplications of a product that takes about 20 µs on a CPU

# Packing a, b, c, d and multi_d at once takes half the time of setting them one by one. By number of D tensors:
_PACK = [struct.Struct(f"@{4 + count}P").pack_into for count in range(MAX_D.value + 1)]
_FIRST = GemmArgs.a.offset


class GemmBinder(ArrayBinder[GemmArgs]):
    """Binds arrays to the plan of one problem."""

    __slots__ = ("_bytes", "_d_bytes", "_pack", "_problem")

    args_type = GemmArgs

    def __init__(self, problem: GemmProblem, memory: str, shuffled_bytes: int | None) -> None:
        """``memory`` is the device that holds the arrays; ``shuffled_bytes`` is the size of B if it is shuffled."""
        names = ("a", "b", "c", *(f"ds[{number}]" for number in range(problem.num_d)), "out")
        work = max(problem.m, 1) * max(problem.n, 1) * max(problem.k, 1) * max(problem.batch, 1)
        super().__init__(names, memory, work <= _BRIEF_WORK)
        self._problem = problem
        bytes_a, bytes_b, bytes_out = problem.spans
        self._bytes = bytes_a, bytes_b if shuffled_bytes is None else shuffled_bytes, bytes_out
        self._d_bytes = problem.d_spans
        self._pack = _PACK[problem.num_d]

    def check(self, operands: Operands, stream: int | None) -> Sequence[Operand | None]:
        """See :class:`Binder`."""
        a, b, c, *ds, out = operands
        if len(ds) != self._problem.num_d:
            raise ArrayError(f"ds has {len(ds)} arrays; allowed for this plan: {self._problem.num_d}")
        if a is None or b is None or out is None:
            raise ArrayError("a, b and out must be given; allocate out as problem.m x problem.n, or use gemm()")
        stream, views = launch_stream(operands, stream, self._memory), {}
        for name, array in (("a", a), ("b", b), ("out", out), ("c", c)):
            if array is not None:
                views[name] = operand(array, name, stream)
                check_operand(name, name, views[name], self._problem, self._memory)
        for number, array in enumerate(ds):
            name = f"ds[{number}]"
            views[name] = d_operand(array, name, stream)
            check_d_operand(name, number, views[name], self._problem, self._memory)
        check_aliasing(views)
        return [views.get(name) for name in self._names]

    def bind(self, args: GemmArgs, addresses: Addresses) -> bool:
        """See :class:`Binder`."""
        ds: Addresses = ()
        if self._d_bytes:
            a, b, c, *ds, out = addresses
        else:  # in half the time of a starred target
            a, b, c, out = addresses
        bytes_a, bytes_b, bytes_out = self._bytes
        if -bytes_out < out - a < bytes_a or -bytes_out < out - b < bytes_b:
            return False  # blocks of one larger matrix, or shared memory
        if c is not None and c != out and -bytes_out < out - c < bytes_out:
            return False
        if not self._d_bytes:
            self._pack(args, _FIRST, a, b, c or 0, out)
            return True
        for address, nbytes in zip(ds, self._d_bytes):  # noqa: B905 - equal metadata; strict= costs 0.3 us
            if -bytes_out < out - address < nbytes:
                return False
        self._pack(args, _FIRST, a, b, c or 0, out, *ds)
        return True

    def write(self, args: GemmArgs, addresses: Addresses) -> None:
        """See :class:`Binder`."""
        a, b, c, *ds, out = addresses
        self._pack(args, _FIRST, a, b, c or 0, out, *ds)

    def regions(self, args: GemmArgs) -> list[Region]:
        """See :class:`Binder`. C may be D; it is listed separately only if it is not."""
        bytes_a, bytes_b, bytes_d = self._bytes
        spans = [Region(args.a, bytes_a, False, "A"), Region(args.b, bytes_b, False, "B")]
        spans.append(Region(args.d, bytes_d, True, "D"))
        if args.c != args.d:
            spans.append(Region(args.c, bytes_d, False, "C"))
        return spans + [Region(args.multi_d[i], nbytes, False, f"D{i}") for i, nbytes in enumerate(self._d_bytes)]
