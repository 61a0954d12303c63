"""Bind arrays to a convolution plan: check them and write their addresses into ``kw_conv_args``.

Operands stand in the order of :data:`kernelwright.dispatch.operations.convolution.operand.NAMES`; bias and residual are
None if the problem has none.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kernelwright.dispatch.arrays.binder import ArrayBinder
from kernelwright.dispatch.arrays.guards import Addresses, Operands
from kernelwright.dispatch.arrays.streams import launch_stream
from kernelwright.dispatch.arrays.view import ArrayView
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.simulated import Region
from kernelwright.dispatch.operations.convolution.operand import NAMES, check_aliasing, check_operand, tensor
from kernelwright.problems.convolution.problem import ConvProblem
from kernelwright.problems.convolution.structs import ConvArgs

_BRIEF_FLOPS = 1 << 19  # of a convolution that takes about 20 µs on a CPU

_pack = struct.Struct("@5P").pack_into  # a, b, d, bias, residual
_FIRST = ConvArgs.a.offset


class ConvBinder(ArrayBinder[ConvArgs]):
    """Binds arrays to the plan of one problem."""

    __slots__ = ("_bytes", "_problem")

    args_type = ConvArgs

    def __init__(self, problem: ConvProblem, memory: str) -> None:
        """``memory`` is the device that holds the arrays."""
        super().__init__(NAMES[problem.direction], memory, problem.flops <= _BRIEF_FLOPS)
        self._problem = problem
        kinds = {"forward": "xwy", "backward_data": "ywx", "backward_weight": "xyw"}[problem.direction]
        a, b, out = map(problem.span, kinds)
        self._bytes = a, b, problem.k * problem.itemsize, out if problem.residual else 0, out

    def check(self, operands: Operands, stream: int | None) -> Sequence[ArrayView | None]:
        """See :class:`Binder`."""
        problem = self._problem
        wanted = dict.fromkeys(self._names, True) | {"bias": problem.bias, "residual": problem.residual}
        stream, views = launch_stream(operands, stream, self._memory), {}
        for name, array in zip(self._names, operands, strict=True):
            if (array is not None) != wanted[name]:
                raise ArrayError(
                    f"{name} is {'missing' if wanted[name] else 'given'}; the plan's problem says otherwise"
                )
            if array is not None:
                dims = 1 if name == "bias" else len(problem.sizes) + 2
                views[name] = tensor(array, name, dims, stream)
                check_operand(views[name], name, problem, self._memory)
        check_aliasing(views, self._names[-1])
        return [views.get(name) for name in self._names]

    def bind(self, args: ConvArgs, addresses: Addresses) -> bool:
        """See :class:`Binder`."""
        a, b, bias, residual, out = addresses
        bytes_a, bytes_b, bytes_bias, bytes_residual, bytes_out = self._bytes
        if -bytes_out < out - a < bytes_a or -bytes_out < out - b < bytes_b:
            return False
        if bias is not None and -bytes_out < out - bias < bytes_bias:
            return False
        if residual is not None and residual != out and -bytes_out < out - residual < bytes_residual:
            return False
        _pack(args, _FIRST, a, b, out, bias or 0, residual or 0)
        return True

    def write(self, args: ConvArgs, addresses: Addresses) -> None:
        """See :class:`Binder`."""
        a, b, bias, residual, out = addresses
        _pack(args, _FIRST, a, b, out, bias or 0, residual or 0)

    def regions(self, args: ConvArgs) -> list[Region]:
        """See :class:`Binder`. The residual may be the result itself."""
        spans = [
            Region(address, nbytes, name == self._names[-1], name)
            for name, nbytes, address in zip(
                self._names, self._bytes, (args.a, args.b, args.bias, args.residual, args.d), strict=True
            )
            if address and not (name == "residual" and address == args.d)
        ]
        return spans
