"""``grouped_gemm()``: from lists of arrays to one launch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernelwright.dispatch.arrays.guards import metadata_key
from kernelwright.dispatch.arrays.streams import launch_stream
from kernelwright.dispatch.core.cache import Cache
from kernelwright.dispatch.core.errors import ArrayError, NoKernelError
from kernelwright.dispatch.core.native_dispatcher import NativeDispatcher
from kernelwright.dispatch.core.plan import Checked
from kernelwright.dispatch.operations.gemm.from_arrays import GemmOperands, read_operands
from kernelwright.dispatch.operations.gemm.grouped_binder import check_views
from kernelwright.dispatch.operations.gemm.operand import allocator, operand
from kernelwright.dispatch.operations.gemm.plan import GroupedPlan
from kernelwright.problems.gemm.grouped_problem import GroupedGemmProblem
from kernelwright.problems.gemm.problem import Epilogue, GemmProblem
from kernelwright.problems.scalars import real


class GroupedGemmCalls:
    """Calls of grouped products of one dispatcher. Threads may share it."""

    def __init__(self, core: NativeDispatcher) -> None:
        """``core`` owns the plans."""
        self._core = core
        # Plans by views of the arrays and options.
        self.by_views: Cache[tuple[object, ...], GroupedPlan] = core.new_cache()
        # By metadata of the arrays and options: the plan and what it checked.
        self.by_call: Cache[tuple[object, ...], tuple[GroupedPlan, Checked]] = core.new_cache()

    def grouped_gemm(
        self, a: Sequence[Any], b: Sequence[Any], outs: Sequence[Any] | None, cs: Sequence[Any] | None, alpha: float,
        beta: float, layout: str | None, stream: int | None,
    ) -> list[Any]:  # fmt: skip
        """See :meth:`Dispatcher.grouped_gemm`."""
        given = {"a": a, "b": b, "outs": outs, "cs": cs}
        counts = {name: len(arrays) for name, arrays in given.items() if arrays is not None}
        if len(set(counts.values())) > 1:
            listed = ", ".join(f"{name} {count}" for name, count in counts.items())
            raise ArrayError(f"numbers of matrices differ: {listed}; allowed: one for each group")
        if cs is not None and outs is None:
            raise ArrayError("cs is given without outs; pass outs, which may be cs")
        if not a:
            return []
        absent, alpha, beta = [None] * len(a), real("alpha", alpha), real("beta", beta)
        operands = (*a, *b, *(cs or absent), *(outs or absent))
        metadata = None if outs is None else metadata_key(operands)
        key = (len(a), metadata, alpha, beta, layout)
        known = None if metadata is None else self.by_call.get(key)
        if known is not None and known[0].relaunch(operands, stream, known[1]):
            return list(outs or ())
        stream = launch_stream(operands, stream, self._core.device.memory)
        groups = [
            _read_group(number, group, beta, stream)
            for number, group in enumerate(zip(a, b, cs or absent, outs or absent, strict=True))
        ]
        plan = self._plan_for(groups, Epilogue(alpha, beta), layout)
        results = list(outs) if outs is not None else []
        for group, first in zip(groups, a, strict=True):
            if group.out is None:
                make = allocator(group.a, group.shape, group.dtype_c, plan.problem.layout[2] == "r", first)
                results.append(self._core.made_on(stream, group.a.family, make))
                group.out = operand(results[-1], "out", stream)
        views = [view for each in zip(*((g.a, g.b, g.c, g.out) for g in groups), strict=True) for view in each]
        check_views(views)
        launched = plan.launch_views((*a, *b, *(cs or absent), *results), views, stream)
        if metadata is not None and launched is not None:
            self.by_call.replace(key, (plan, launched))
        return results

    def _plan_for(self, groups: Sequence[GemmOperands], epilogue: Epilogue, layout: str | None) -> GroupedPlan:
        """The plan for the first layout in which all groups can be read and which some kernel serves."""
        memory = self._core.device.memory
        for number, group in enumerate(groups):
            if group.a.device != memory:
                raise ArrayError(f"a[{number}] is on {group.a.device}; allowed by this dispatcher: {memory}")
            if group.batch is not None or group.b.b_format:
                raise ArrayError(f"group {number} is a batch or has a shuffled b; allowed: matrices of two dimensions")
        views = [view for group in groups for view in group.views]
        key = (*(view and view.signature for view in views), epilogue, layout)
        plan = self.by_views.get(key)
        return plan if plan is not None else self.by_views.put(key, self._new_plan(groups, epilogue, layout))

    def _new_plan(self, groups: Sequence[GemmOperands], epilogue: Epilogue, layout: str | None) -> GroupedPlan:
        problems = [[GemmProblem(**fields) for fields in group.readings(epilogue, layout, 1)] for group in groups]
        readings = [{problem.layout: problem for problem in listed} for listed in problems]
        common = [letters for letters in readings[0] if all(letters in reading for reading in readings)]
        if not common:
            raise ArrayError("no layout fits all groups; pass every a, b and out in the same order")
        refused: NoKernelError | None = None
        for letters in common:
            try:
                made = self._core.plan(_grouped([reading[letters] for reading in readings], epilogue))
            except NoKernelError as error:
                refused = refused or error
                continue
            assert isinstance(made, GroupedPlan)
            return made
        assert refused is not None
        raise refused


def _grouped(problems: Sequence[GemmProblem], epilogue: Epilogue) -> GroupedGemmProblem:
    """Merge problems of one layout into the groups of one problem. ArrayError unless their element types agree."""
    first = problems[0]
    for number, other in enumerate(problems):
        for field in ("dtype_a", "dtype_b", "dtype_c"):
            if getattr(other, field) != getattr(first, field):
                text = f"{field} is {getattr(other, field)} in group {number}, {getattr(first, field)} in group 0"
                raise ArrayError(f"{text}; they must be equal")
    groups = tuple((p.m, p.n, p.k, p.lda or 1, p.ldb or 1, p.ldc or 1) for p in problems)
    types = {"dtype": first.dtype_a, "dtype_b": first.dtype_b, "dtype_c": first.dtype_c}
    return GroupedGemmProblem(groups, layout=first.layout, alpha=epilogue.alpha, beta=epilogue.beta, **types)


def _read_group(number: int, operands: tuple[Any, ...], beta: float, stream: int | None) -> GemmOperands:
    try:
        return read_operands(*operands, beta=beta, stream=stream)
    except ArrayError as error:
        raise ArrayError(f"group {number}: {error}") from None
