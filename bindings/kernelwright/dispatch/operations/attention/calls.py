"""``attention()`` and related calls: from arrays to a launch, with caches that make repeated calls short."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kernelwright.dispatch.arrays import allocate
from kernelwright.dispatch.arrays.guards import metadata_key
from kernelwright.dispatch.arrays.streams import launch_stream
from kernelwright.dispatch.arrays.view import ArrayView, view
from kernelwright.dispatch.core.cache import Cache
from kernelwright.dispatch.core.errors import ArrayError
from kernelwright.dispatch.core.native_dispatcher import NativeDispatcher
from kernelwright.dispatch.core.plan import Checked, OperationPlan
from kernelwright.dispatch.operations.attention.from_arrays import (
    AppendOptions,
    AttentionOptions,
    append_problem,
    attention_problem,
)
from kernelwright.dispatch.operations.attention.operand import NAMES, NEEDED, OUTPUTS, Wanted, wanted
from kernelwright.dispatch.operations.attention.plan import AttentionPlan
from kernelwright.dispatch.operations.attention.problem import AppendProblem, AttentionProblem

Options = AttentionOptions | AppendOptions
Allocators = tuple[tuple[int, Callable[[], Any]], ...]  # of results that callers do not give, by index
_ARGUMENTS = {"o": "out", "do": "dout"}  # operands whose parameters have other names


class AttentionCalls:
    """Attention calls of one dispatcher. Threads may share it."""

    def __init__(self, core: NativeDispatcher) -> None:
        """``core`` owns the plans."""
        self._core = core
        # By metadata of the arrays and options: the plan, what it checked, and what allocates results.
        self.by_call: Cache[tuple[object, ...], tuple[OperationPlan[Any], Checked, Allocators]] = core.new_cache()

    def run(
        self,
        given: dict[str, Any],
        options: Options,
        stream: int | None,
        seed: int = 0,
        offset: int = 0,
        own_workspace: bool = False,
    ) -> dict[str, Any]:
        """Launch with operands by name. Returns them together with the results that were allocated."""
        names = NAMES[options.direction]
        operands = [given.get(name) for name in names]
        if own_workspace:
            return self._first(operands, options, stream, seed, offset, None, True)
        metadata = metadata_key(tuple(operands))
        key = None if metadata is None else (metadata, options)
        try:
            known = None if key is None else self.by_call.get(key)
        except TypeError:  # an unhashable option is illegal: the problem reports it
            key = known = None
        if known is not None:
            plan, checked, makers = known
            for at, make in makers:
                operands[at] = self._core.made_on(stream, checked.family, make)
            if self._relaunch(plan, tuple(operands), seed, offset, stream, checked):
                return dict(zip(names, operands, strict=True))
            for at, _ in makers:
                operands[at] = None
        return self._first(operands, options, stream, seed, offset, key)

    def _relaunch(
        self,
        plan: OperationPlan[Any],
        operands: tuple[Any, ...],
        seed: int,
        offset: int,
        stream: int | None,
        checked: Checked,
    ) -> bool:
        if isinstance(plan, AttentionPlan):
            plan.seeded(seed, offset)
        return plan.relaunch(operands, stream, checked)

    def _first(
        self,
        operands: list[Any],
        options: Options,
        stream: int | None,
        seed: int,
        offset: int,
        key: tuple[object, ...] | None,
        own_workspace: bool = False,
    ) -> dict[str, Any]:
        """Make a call whose plan is not known, or whose workspace must not be shared."""
        names = NAMES[options.direction]
        stream = launch_stream(operands, stream, self._core.device.memory)
        first, problem = self._posed(operands, options, stream)
        plan = self._core.plan(problem)
        makers = self._makers(problem, options, first, operands)
        for at, make in makers:
            operands[at] = self._core.made_on(stream, first.family, make)
        if own_workspace:
            numbers = {"seed": seed, "offset": offset} if isinstance(plan, AttentionPlan) else None
            plan.bound(tuple(operands), None, stream, numbers)()
            return dict(zip(names, operands, strict=True))
        if isinstance(plan, AttentionPlan):
            plan.seeded(seed, offset)
        plan.launch(tuple(operands), stream)
        checked = plan.checked
        if key is not None and checked is not None:
            self.by_call.replace(key, (plan, checked, makers))
        return dict(zip(names, operands, strict=True))

    def plan(self, given: dict[str, Any], options: Options) -> OperationPlan[Any]:
        """The plan that :meth:`run` launches with these operands and results; nothing is launched."""
        operands = [given.get(name) for name in NAMES[options.direction]]
        stream = launch_stream(operands, None, self._core.device.memory)
        return self._core.plan(self._posed(operands, options, stream)[1])

    def _posed(
        self, operands: list[Any], options: Options, stream: int | None
    ) -> tuple[ArrayView, AppendProblem | AttentionProblem]:
        """The view of the first operand, and the problem that all of them pose."""
        names = NAMES[options.direction]
        views = {
            name: view(array, name, stream) for name, array in zip(names, operands, strict=True) if array is not None
        }
        for name in NEEDED[options.direction]:
            if name not in views:
                raise ArrayError(f"{_ARGUMENTS.get(name, name)} is missing; this call needs it")
        first = views["k" if isinstance(options, AppendOptions) else "q"]
        self._core.check_memory(first.device)
        if isinstance(options, AppendOptions):
            return first, append_problem(views, options)
        return first, attention_problem(views, options)

    def _makers(self, problem: Any, options: Options, first: ArrayView, operands: list[Any]) -> Allocators:
        """Allocators of the results that the problem has and the caller does not give."""
        names, makers = NAMES[options.direction], []
        owner = next(array for array in operands if array is not None)
        for name, want in wanted(problem).items():
            at = names.index(name)
            if operands[at] is None:
                given = _ARGUMENTS.get(name, name)
                if at < len(names) - OUTPUTS[options.direction]:
                    raise ArrayError(f"{given} is missing; this call needs it")
                if getattr(problem, "min_seqlen_q", 0):
                    raise ArrayError(f"{given} is missing; min_seqlen_q leaves rows of it as they are: pass an array")
                shape = _shape(problem, name, want, options.layout)
                makers.append((at, allocate.allocator(first.family, shape, want.dtype, owner, first.fnuz)))
        return tuple(makers)


def _shape(problem: Any, name: str, want: Wanted, layout: str) -> tuple[int, ...]:
    """The shape of a result in a layout's order; dbias always has heads before rows."""
    if want.shape is not None:
        return want.shape
    assert want.extents is not None
    requests, heads, rows, hdim = want.extents
    inner = (heads, rows, hdim) if layout == "bhsd" or name == "dbias" else (rows, heads, hdim)
    return inner if getattr(problem, "group", False) else (requests, *inner)
