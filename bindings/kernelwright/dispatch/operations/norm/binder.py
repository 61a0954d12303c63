"""Bind arrays to the plan of a norm: check them and write their addresses into ``kw_norm_args``.

Operands stand in the order of :data:`kernelwright.dispatch.operations.norm.operand.NAMES`; those that the problem lacks
are None. The dispatcher checks at every launch which of them share memory.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kernelwright.dispatch.arrays.binder import ArrayBinder
from kernelwright.dispatch.arrays.guards import Addresses, Operands
from kernelwright.dispatch.arrays.streams import launch_stream
from kernelwright.dispatch.arrays.view import ArrayView, view
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.simulated import Region
from kernelwright.dispatch.operations.norm.operand import INPUTS, NAMES, check_operand, wanted
from kernelwright.problems.norm.problem import NormProblem
from kernelwright.problems.norm.structs import NormArgs
from kernelwright.problems.shared import ITEM_BYTES

_BRIEF_FLOPS = 1 << 19  # of a norm that takes about 20 µs on a CPU
_pack = struct.Struct(f"@{len(NAMES)}P").pack_into
_FIRST = NormArgs.x.offset
_MEMBERS = tuple("y" if name == "out" else name for name in NAMES)


class NormBinder(ArrayBinder[NormArgs]):
    """Binds arrays to the plan of one problem."""

    __slots__ = ("_problem", "_wanted")

    args_type = NormArgs

    def __init__(self, problem: NormProblem, memory: str) -> None:
        """``memory`` is the device that holds the arrays."""
        super().__init__(NAMES, memory, problem.flops <= _BRIEF_FLOPS, len(NAMES) - INPUTS)
        self._problem = problem
        self._wanted = wanted(problem)

    def check(self, operands: Operands, stream: int | None) -> Sequence[ArrayView | None]:
        """See :class:`Binder`."""
        stream = launch_stream(operands, stream, self._memory)
        views: list[ArrayView | None] = []
        for (name, needed), array in zip(self._wanted.items(), operands, strict=True):
            if (array is not None) != needed:
                raise ArrayError(f"{name} is {'missing' if needed else 'given'}; the plan's problem says otherwise")
            views.append(None if array is None else view(array, name, stream))
            if views[-1] is not None:
                check_operand(views[-1], name, self._problem, self._memory)
        return views

    def bind(self, args: NormArgs, addresses: Addresses) -> bool:
        """See :class:`Binder`."""
        self.write(args, addresses)
        return True

    def write(self, args: NormArgs, addresses: Addresses) -> None:
        """See :class:`Binder`."""
        _pack(args, _FIRST, *(address or 0 for address in addresses))

    def regions(self, args: NormArgs) -> list[Region]:
        """See :class:`Binder`. Memory that is both read and written is listed once."""
        places = {name: getattr(args, member) for name, member in zip(NAMES, _MEMBERS, strict=True)}
        written = {places[name] for name in NAMES[INPUTS:]}
        return [
            Region(address, self._bytes(name), name in NAMES[INPUTS:], name)
            for name, address in places.items()
            if address and (name in NAMES[INPUTS:] or address not in written)
        ]

    def _bytes(self, name: str) -> int:
        """Bytes from the first element to the end of the last."""
        p = self._problem
        if name == "scales":
            return 4 * p.rows
        strides = {"x": p.stride_x, "residual": p.stride_residual, "dy": p.stride_dy, "out": p.stride_y}
        strides["sum"] = p.stride_sum
        if name not in strides:
            return p.columns * ITEM_BYTES[p.dtype_w]
        elements = (p.rows - 1) * (strides[name] or 0) + p.columns if p.rows else 0
        return elements * ITEM_BYTES[p.dtype_y if name == "out" else p.dtype]
