"""Every kernel of a library on one problem, with every number of slices or splits: checked, then timed in turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.dispatch import Dispatcher, KernelLibrary, KernelwrightError, OperationPlan
from kernelwright.tile_engine.operation import Measurable, Operands, Record
from kernelwright.tile_engine.results.row import Row, Table

# The field that leaves a choice open, by operation and direction.
OPEN = {"gemm": "split_k", "convolution backward_weight": "split_k", "attention forward": "num_splits"}
SAMPLE_S, MOST_CALLS = 0.002, 300  # seconds and calls per sample
ROUNDS, FEW_ROUNDS, LONG_S = 5, 3, 0.004  # fewer rounds for long launches
FAR, SLACK_S = 2.0, 50e-6  # calls whose first launch is this many times slower, and by this much, are not timed
NEAR = 1.25  # a call this many times slower than the fastest one is timed once
SLOW = "slow"  # status of kernels that are too slow: their time is that of one launch

Mark = Callable[[str, str], None]


@dataclass
class Call:
    """A kernel with a number of slices or splits, and its outcome."""

    name: str
    identity: str
    choices: str
    stages: tuple[str, ...]
    launch: Callable[[], object]
    selected: bool
    status: str = "ok"
    reason: str = ""
    error: float | None = None
    first_s: float = 0.0
    seconds: list[float] = field(default_factory=list)


class Library:
    """A library with a dispatcher that chooses, and one dispatcher per kernel."""

    def __init__(self, folder: Path) -> None:
        """Load it."""
        self.loaded = KernelLibrary.load(folder)
        self._chooser = Dispatcher([self.loaded])
        self._single: dict[str, Dispatcher] = {}

    def calls(self, operation: Measurable, record: Record, operands: Operands) -> Iterator[Call]:
        """Every kernel that serves the problem, with every value that the dispatcher would consider."""
        problem = operation.problem(record)
        chosen = _planned(self._chooser, problem)
        if chosen is None:
            return
        taken = {stage.kernel.identity for stage in chosen.stages}
        name = OPEN.get(operation.name) or OPEN.get(f"{operation.name} {record['direction']}")
        specs = {kernel.identity: kernel.spec for kernel in self.loaded.kernels}
        for stage in self._chooser.explain(problem).stages:
            for kernel, value in stage.pairs:
                if operation.auxiliary(specs[kernel.identity]):
                    continue
                variant = replace(problem, **{name: value.value}) if name and value.value else problem
                plan = _planned(self._of(kernel.identity), variant)
                if plan is None:
                    continue
                selected = kernel.identity in taken and plan.choices == chosen.choices
                others = tuple(one.kernel.identity for one in plan.stages if one.kernel.identity != kernel.identity)
                launch = operation.bind(plan, operands)
                yield Call(kernel.name, kernel.identity, plan.choices, others, launch, selected)

    def _of(self, identity: str) -> Dispatcher:
        if identity not in self._single:
            self._single[identity] = Dispatcher([self.loaded], selection=identity)
        return self._single[identity]


def _planned(dispatcher: Dispatcher, problem: Any) -> OperationPlan[Any] | None:
    """The dispatcher's plan; None if no kernel serves the problem."""
    try:
        return dispatcher.plan(problem)
    except KernelwrightError:
        return None


def measured(
    library: Library, operation: Measurable, record: Record, lost: set[tuple[str, str]], mark: Mark
) -> list[Call]:
    """Every call, correct ones with times; omits ``lost`` ones, by identity and choices."""
    operands = operation.operands(record, seed=0)
    candidates = [one for one in library.calls(operation, record, operands) if (one.identity, one.choices) not in lost]
    right: list[list[np.ndarray[Any, Any]]] = []  # results of the first correct call
    for one in candidates:
        mark(one.identity, one.choices)
        _check(one, operands, right)
    _leave_slow(candidates)
    _time([one for one in candidates if one.status == "ok"], mark)
    return candidates


def _check(one: Call, operands: Operands, right: list[list[np.ndarray[Any, Any]]]) -> None:
    """Check one launch and time another. Results bitwise equal to correct ones need no further comparison."""
    operands.poison()
    try:
        one.launch()
        if right and all(
            np.array_equal(_bits(out), _bits(first)) for out, first in zip(operands.outs, right[0], strict=True)
        ):
            one.error = 0.0
        else:
            one.error = operands.error()
        one.first_s = _sample(one, 1)
        if one.first_s < LONG_S:
            one.first_s = min(one.first_s, _sample(one, 1))  # a disturbance of one launch does not affect the other
    except KernelwrightError as error:
        one.status, one.reason = "failed", str(error)
        return
    if not one.error <= 1:
        one.status, one.reason = "wrong", "an element is beyond its error bound"
    elif not right:
        right.append([out.copy(order="K") for out in operands.outs])


def _bits(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return array.view({1: np.uint8, 2: np.uint16, 4: np.uint32}[array.dtype.itemsize])


def _leave_slow(calls: Sequence[Call]) -> None:
    least = min((one.first_s for one in calls if one.status == "ok"), default=0.0)
    for one in calls:
        if one.status == "ok" and not one.selected and one.first_s > FAR * least + SLACK_S:
            one.status, one.reason = SLOW, f"a launch took more than {FAR:g} times as long as the fastest one"


def _time(calls: Sequence[Call], mark: Mark) -> None:
    """Time each call once, then those near the fastest one in rounds."""
    counts = [max(1, min(MOST_CALLS, int(SAMPLE_S / max(one.first_s, 1e-7)))) for one in calls]
    for one, count in zip(calls, counts, strict=True):
        mark(one.identity, one.choices)
        one.seconds = [one.first_s if one.first_s > LONG_S else _sample(one, count)]
    least = min((one.seconds[0] for one in calls), default=0.0)
    near = [
        (one, count) for one, count in zip(calls, counts, strict=True) if one.selected or one.seconds[0] < NEAR * least
    ]
    for one, _ in near:
        one.seconds = []
    for turn in range(ROUNDS if least < LONG_S else FEW_ROUNDS):
        first = turn % max(len(near), 1)
        for one, count in near[first:] + near[:first]:
            mark(one.identity, one.choices)
            one.seconds.append(_sample(one, count))


def _sample(one: Call, count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        one.launch()
    return (time.perf_counter() - start) / count


def rows(table: Table, index: int, record: Record, calls: Sequence[Call]) -> list[Row]:
    """The rows of a problem; the tags state how often each call was timed."""
    made = []
    for one in calls:
        seconds = one.seconds or [one.first_s] * (one.status == SLOW)
        times = [statistics.median(seconds), min(seconds), max(seconds)] if seconds else None
        report = {
            **{"kernel": one.identity, "status": one.status, "reason": one.reason, "choices": one.choices},
            **{"stages": one.stages, "error": one.error, "latency_ms": times and [1e3 * value for value in times]},
        }
        made.append({**table.row(one.name, index, record, report, one.selected), "tags": f"rounds={len(one.seconds)}"})
    return made
