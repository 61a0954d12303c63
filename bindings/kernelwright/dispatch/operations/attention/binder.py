"""Bind arrays to an attention plan: check them and write their addresses into its argument struct.

Operands stand in the order of :data:`kernelwright.dispatch.operations.attention.operand.NAMES`, None for those that the
problem lacks.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from kernelwright.dispatch.arrays import dtypes
from kernelwright.dispatch.arrays.binder import A, ArrayBinder
from kernelwright.dispatch.arrays.guards import Addresses, Guard, Operands
from kernelwright.dispatch.arrays.streams import launch_stream
from kernelwright.dispatch.arrays.view import ArrayView, view
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.simulated import Region
from kernelwright.dispatch.operations.attention.operand import (
    C_NAMES,
    NAMES,
    OUTPUTS,
    Wanted,
    check_plain,
    check_tensor,
    wanted,
)
from kernelwright.dispatch.operations.attention.overlap import Placed, interleave
from kernelwright.dispatch.operations.attention.page_list import PageList, PageListGuard
from kernelwright.dispatch.operations.attention.problem import AppendProblem, AttentionProblem
from kernelwright.problems.attention import structs

_BRIEF_FLOPS = 1 << 19  # of a launch that takes about 20 µs on a CPU


@cache
def _members(struct_type: type[ctypes.Structure], kind: str) -> list[tuple[Callable[..., None], int, list[int]]]:
    """Runs of adjacent members of an argument struct: their writer, their offset, and the indices of their operands."""
    places = {C_NAMES.get(name, name): at for at, name in enumerate(NAMES[kind])}
    runs: list[tuple[int, list[int]]] = []
    for name, *_ in struct_type._fields_:
        if name in places:
            offset: int = getattr(struct_type, name).offset
            if not runs or runs[-1][0] + 8 * len(runs[-1][1]) != offset:
                runs.append((offset, []))
            runs[-1][1].append(places[name])
    return [(struct.Struct(f"@{len(run)}P").pack_into, offset, run) for offset, run in runs]


class _Binder(ArrayBinder[A]):
    """Common base of the binders of attention and of its caches."""

    __slots__ = ("_bytes", "_listed", "_members", "_page_list", "_pairs", "_problem", "_wanted")

    def __init__(self, problem: AttentionProblem | AppendProblem, kind: str, memory: str) -> None:
        """``kind`` names the operands; ``memory`` is the device that holds the arrays."""
        super().__init__(NAMES[kind], memory, problem.flops <= _BRIEF_FLOPS, OUTPUTS[kind])
        self._problem = problem
        self._wanted = wanted(problem)
        self._bytes = [self._size(name) for name in self._names]
        held = [(at, nbytes) for at, nbytes in enumerate(self._bytes) if nbytes]
        written = [one for one in held if one[0] >= len(self._names) - self._outputs]
        self._pairs = [(out, size, [one for one in held if one[0] < out]) for out, size in written]
        self._members = _members(self.args_type, kind)
        self._listed = 0  # bytes of the page list checked last
        self._page_list = self._found_page_list() if memory == "cpu" else None

    def _size(self, name: str) -> int:
        want = self._wanted.get(name)
        if want is None:
            return 0
        if want.shape is None:
            return self._problem.span(name)
        return math.prod(want.shape) * dtypes.ITEMSIZE[want.dtype]

    def _found_page_list(self) -> PageList | None:
        want, at = self._wanted.get("page_indptr"), self._names.index
        if want is None or want.shape is None:
            return None
        return PageList(at("page_table"), at("page_indptr"), math.prod(want.shape))

    def guard(self, operands: Operands) -> Guard | None:
        """See :class:`Binder`."""
        made, page_list = super().guard(operands), self._page_list
        if made is None or page_list is None:
            return made
        return PageListGuard(made, page_list, len(operands[page_list.table]))

    def check(self, operands: Operands, stream: int | None) -> Sequence[ArrayView | None]:
        """See :class:`Binder`."""
        stream, views = launch_stream(operands, stream, self._memory), []
        for name, array in zip(self._names, operands, strict=True):
            want = self._wanted.get(name)
            if (array is None) != (want is None):
                raise ArrayError(f"{name} is {'missing' if want else 'given'}; the plan's problem says otherwise")
            views.append(None if want is None else self._checked(view(array, name, stream), name, want))
        self._check_aliasing(views)
        if self._page_list is not None:
            table, indptr = views[self._page_list.table], views[self._page_list.indptr]
            assert table is not None and indptr is not None  # the problem wants them
            self._page_list.check(indptr.pointer, table.shape[0])
        return views

    def _checked(self, operand: ArrayView, name: str, want: Wanted) -> ArrayView:
        if name == "bias" and want.shape is not None:
            name = "alibi_slopes"
        if operand.dtype != want.dtype:
            raise ArrayError(f"{name} is {operand.dtype}; allowed for this plan: {want.dtype}")
        if operand.device != self._memory:
            raise ArrayError(f"{name} is on {operand.device}; allowed for this plan: {self._memory}")
        if want.shape is None:
            check_tensor(operand, name, want, getattr(self._problem, f"{name}_strides"))
        else:
            check_plain(operand, name, want)
        if want.least:
            self._listed = math.prod(operand.shape) * dtypes.ITEMSIZE[operand.dtype]
        if operand.readonly and name in self._names[-self._outputs :]:
            raise ArrayError(f"{name} cannot be written to; pass a writable array")
        return operand

    def _check_aliasing(self, views: Sequence[ArrayView | None]) -> None:
        at = self._overlap([None if one is None else one.pointer for one in views])
        if at is not None:
            written, other = (self._names[index] for index in at)
            raise ArrayError(f"{written} shares memory with {other}, which the launch uses too; pass another array")

    def _overlap(self, addresses: Addresses) -> tuple[int, int] | None:
        """Indices of an output and of another operand that share memory, if any."""
        for out, size, others in self._pairs:
            begin = addresses[out]
            if begin is None:
                continue
            for other, nbytes in others:
                address = addresses[other]
                if address is None or not -nbytes < address - begin < size:
                    continue
                if not self._apart(out, other, address - begin):
                    return out, other
        return None

    def _apart(self, out: int, other: int, distance: int) -> bool:
        """Whether operands with overlapping spans share no element, or are Q and its rotated self."""
        names = self._names[out], self._names[other]
        if names == ("q_out", "q") and not distance:
            return True
        wanted = [self._wanted[name] for name in names]
        if any(want.shape is not None for want in wanted):
            return False
        return interleave(self._placed(names[0]), self._placed(names[1]), distance)

    def _placed(self, name: str) -> Placed:
        want, strides = self._wanted[name], getattr(self._problem, f"{name}_strides")
        assert want.extents is not None
        return Placed(self._problem.strided(name), strides, dtypes.ITEMSIZE[want.dtype])

    def bind(self, args: Any, addresses: Addresses) -> bool:
        """See :class:`Binder`."""
        if self._overlap(addresses) is not None:
            return False
        self.write(args, addresses)
        return True

    def write(self, args: Any, addresses: Addresses) -> None:
        """See :class:`Binder`."""
        for pack, offset, places in self._members:
            pack(args, offset, *[addresses[at] or 0 for at in places])

    def regions(self, args: Any) -> list[Region]:
        """See :class:`Binder`. Rotated Q may be Q itself."""
        listed = []
        first_output = len(self._names) - self._outputs
        for index, (name, nbytes) in enumerate(zip(self._names, self._bytes, strict=True)):
            address = getattr(args, C_NAMES.get(name, name))
            want = self._wanted.get(name)
            size = self._listed if want is not None and want.least else nbytes
            in_place = name == "q" and "q_out" in self._names and address == args.q_out
            if address and not in_place:
                listed.append(Region(address, size, index >= first_output, name))
        return listed


class AttentionBinder(_Binder[structs.AttentionArgs]):
    """Binds arrays to the plan of attention or of its gradients."""

    __slots__ = ()

    args_type = structs.AttentionArgs

    def __init__(self, problem: AttentionProblem, memory: str) -> None:
        """``memory`` is the device that holds the arrays."""
        super().__init__(problem, problem.direction, memory)


class AppendBinder(_Binder[structs.AppendArgs]):
    """Binds arrays to the plan of an append to a cache."""

    __slots__ = ()

    args_type = structs.AppendArgs

    def __init__(self, problem: AppendProblem, memory: str) -> None:
        """``memory`` is the device that holds the arrays."""
        super().__init__(problem, "append", memory)
