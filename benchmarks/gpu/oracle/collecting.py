"""Shared code of collect.py's processes: calls that are compared and then timed in turns, and their rows."""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from timing import Call

from kernelwright.dispatch import Dispatcher, Heuristic, KernelEntry, KernelLibrary, KernelwrightError, OperationPlan
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.results.row import Row, Table

SAMPLE_US, MOST_CALLS = 200.0, 80  # timed work and calls per sample
AHEAD_CLOCKS = 60_000  # 30 us
LONG_US = 300.0  # of a launch: longer ones need no graph, as the host runs ahead of them, and fewer rounds
ROUNDS, FEW_ROUNDS = 7, 3
FAR, SLACK_US = 2.0, 60.0  # calls whose first two launches are this many times slower, and by this much, are not timed
MOST_WORKSPACE = 2 << 30  # bytes: slices that need more are not launched
NEAR = 1.25  # a kernel this many times slower than the fastest one is timed once: the minimum of two times
REFERENCE = "reference"  # status of rows for calls that are not kernels of the library
SLOW = "slow"  # status of kernels that are too slow to be timed

Mark = Callable[..., None]


@dataclass
class Candidate:
    """A call on one problem, and its outcome."""

    name: str
    call: Call
    identity: str = ""
    choices: str = ""
    selected: bool = False
    status: str = "ok"
    reason: str = ""
    sample: Any = None
    first_us: float = 0.0
    us: list[float] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str]:
        """Its key in rows; references are known by their names."""
        return self.identity or self.name, self.choices


class Kernels:
    """A library with a dispatcher that chooses, and one dispatcher per kernel."""

    def __init__(self, folder: Path, selection: str | Heuristic = "analytic", device: str = "cuda:0") -> None:
        """Load it."""
        self.loaded = KernelLibrary.load(folder)
        self._device = device
        self.chooser = Dispatcher([self.loaded], device=device, selection=selection)
        self._single: dict[str, Dispatcher] = {}

    def plan(self, kernel: KernelEntry, problem: Any) -> OperationPlan[Any] | None:
        """The plan that has the kernel in its stage; None if the kernel does not serve the problem."""
        if kernel.identity not in self._single:
            one = Dispatcher([self.loaded], device=self._device, selection=kernel.identity)
            self._single[kernel.identity] = one
        return planned(self._single[kernel.identity], problem)


def planned(dispatcher: Dispatcher, problem: Any) -> OperationPlan[Any] | None:
    """The dispatcher's plan; None if no kernel serves the problem."""
    try:
        return dispatcher.plan(problem)
    except KernelwrightError:
        return None


class Workspace:
    """Memory for the launches of a problem, which run in sequence."""

    def __init__(self, device: Any) -> None:
        """Start without memory."""
        self._memory, self._device = torch.empty(0), device

    def address(self, plan: OperationPlan[Any]) -> int:
        """256-byte aligned address of the bytes that a plan needs. Addresses returned earlier become invalid."""
        if plan.workspace_bytes + 256 > len(self._memory):
            self._memory = torch.empty(plan.workspace_bytes + 256, dtype=torch.uint8, device=self._device)
        return self._memory.data_ptr() + -self._memory.data_ptr() % 256


class Case(Protocol):
    """A problem with its operands on the device: several timed sets, and one whose results are compared."""

    problem: Any
    us: float
    """Lower bound of a launch in microseconds, by arithmetic and memory."""
    device: str

    def variants(self, spec: Mapping[str, Any]) -> Sequence[Any]:
        """The problem, plus variants with every number of slices or splits that a kernel supports."""

    def call(self, plan: OperationPlan[Any], workspace: Workspace) -> Call:
        """A call that launches on the numbered set; -1 is the compared one. Each launch queries the workspace."""

    def poison(self) -> None:
        """Fill the outputs of a launch with NaN."""

    def wrong(self) -> str:
        """The error of a launch's result on the compared set; empty if there is none."""


class Oracle:
    """Every kernel of a library, with every number of slices, on problems of one operation."""

    def __init__(
        self,
        library: Kernels,
        operation: Measurable,
        case_of: Callable[[Record], Case],
        mark: Mark,
        learned: Any = None,
    ) -> None:
        """``learned``: the library with a compiled model, whose choices are timed as references."""
        self._library, self._operation, self._case_of, self._mark, self._learned = (
            library,
            operation,
            case_of,
            mark,
            learned,
        )
        self._loaded: set[str] = set()  # kernels that were launched before: the first launch loads code

    def run(self, record: Record, skipped: set[tuple[str, str]]) -> list[Candidate]:
        """Every candidate, correct ones with times; empty if no kernel serves the problem."""
        problem = self._operation.problem(record)
        chosen = planned(self._library.chooser, problem)
        if chosen is None:
            return []
        case = self._case_of(record)
        candidates = [one for one in self._candidates(case, chosen) if one.key not in skipped]
        for one in candidates:
            self._mark(*one.key)
            if one.identity not in self._loaded:
                _launch(one, case)
                self._loaded.add(one.identity)
            _launch(one, case)
        least = min((one.first_us for one in candidates if _right(one)), default=0.0)
        for one in candidates:
            if _right(one) and one.first_us > FAR * least:  # the host may have been busy with something else
                self._mark(*one.key)
                one.first_us = min(one.first_us, _launched(one))
        leave_slow(candidates)
        time_calls([one for one in candidates if one.status in ("ok", REFERENCE)], case.us, ROUNDS, self._mark)
        return candidates

    def _candidates(self, case: Case, chosen: OperationPlan[Any]) -> Iterator[Candidate]:
        seen: set[tuple[str, str]] = set()
        workspace = Workspace(case.device)
        taken = {stage.kernel.identity for stage in chosen.stages}
        for kernel in self._library.loaded.kernels:
            if self._operation.auxiliary(kernel.spec):
                continue
            for problem in case.variants(kernel.spec):
                plan = self._library.plan(kernel, problem)
                if plan is None or (kernel.identity, plan.choices) in seen:
                    continue
                seen.add((kernel.identity, plan.choices))
                one = Candidate(kernel.name, case.call(plan, workspace), kernel.identity, plan.choices)
                one.selected = kernel.identity in taken and plan.choices == chosen.choices
                if one.selected or plan.workspace_bytes <= MOST_WORKSPACE:
                    yield one
        plan = planned(self._learned.chooser, case.problem) if self._learned else None
        if plan is not None:
            yield Candidate(
                f"learned: {plan.kernel.name}", case.call(plan, workspace), choices=plan.choices, status=REFERENCE
            )


def _right(one: Candidate) -> bool:
    """Whether this is a kernel of the library with a correct result."""
    return bool(one.identity) and one.status == "ok"


def _launch(one: Candidate, case: Case) -> None:
    """Once, with its results compared."""
    case.poison()
    try:
        one.first_us = _launched(one)
    except KernelwrightError as error:
        one.status, one.reason = "failed", str(error)
        return
    if said := case.wrong():
        one.status, one.reason = "wrong", said


def _launched(one: Candidate) -> float:
    """Microseconds of a launch on the compared set, including the host's."""
    start, end = event(), event()
    start.record()
    one.call(-1)
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) * 1e3


def time_calls(calls: Sequence[Candidate], us: float, rounds: int, mark: Mark) -> None:
    """Time all calls, and those near the fastest one in rounds; ``us`` is a launch's minimum in microseconds."""
    count = max(1, min(MOST_CALLS, int(SAMPLE_US / us)))
    for one in calls:
        mark(*one.key)
        one.sample = _sampler(one.call, count, us < LONG_US)
        one.us = [min(one.sample(), one.sample())]  # a single one may include unrelated work of the machine
    fastest = min((one.us[0] for one in calls if one.identity), default=0.0)
    near = [one for one in calls if not one.identity or one.selected or one.us[0] < NEAR * fastest]
    for one in near:
        one.us = []
    for turn in range(rounds if us < LONG_US else FEW_ROUNDS):
        for one in near[turn % max(len(near), 1) :] + near[: turn % max(len(near), 1)]:
            mark(*one.key)
            one.us.append(one.sample())
    for one in calls:
        one.sample = None


def leave_slow(candidates: Sequence[Candidate], slack_us: float = SLACK_US) -> None:
    """Exclude kernels from timing whose first launch was far slower than the fastest one's."""
    least = min((one.first_us for one in candidates if _right(one)), default=0.0)
    for one in candidates:
        if _right(one) and not one.selected and one.first_us > FAR * least + slack_us:
            one.status, one.reason = SLOW, f"first launches took more than {FAR:g} times as long as the fastest one"


def _captured(call: Call, count: int) -> Any:
    """A graph of ``count`` calls, captured without torch.cuda.graph, which empties the allocator each time."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    graph.capture_begin()
    for number in range(count):
        call(number)
    graph.capture_end()
    return graph


def _sampler(call: Call, count: int, small: bool) -> Callable[[], float]:
    """Return a timer of one launch, in microseconds, averaged over ``count``; uses a graph for ``small`` ones."""
    if not small:

        def launch() -> None:
            for number in range(count):
                call(number)

        return lambda: _spent(launch, count)
    graph = _captured(call, count)
    graph.replay()  # the first replay uploads the graph
    return lambda: _spent(graph.replay, count)


def _spent(work: Callable[[], object], count: int) -> float:
    start, end = event(), event()
    torch.cuda._sleep(AHEAD_CLOCKS)  # the device waits until all calls are launched, and then waits for none
    start.record()
    work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / count * 1e3


def event() -> Any:
    """A CUDA event with timing enabled."""
    return torch.cuda.Event(enable_timing=True)


def rows(table: Table, index: int, record: Mapping[str, Any], candidates: Sequence[Candidate]) -> list[Row]:
    """The rows of a problem."""
    made = []
    for one in candidates:
        report = {"kernel": one.identity, "status": one.status, "reason": one.reason, "choices": one.choices}
        times = [statistics.median(one.us), min(one.us), max(one.us)] if one.us else None
        report["latency_ms"] = times and [us / 1e3 for us in times]
        row = table.row(one.name, index, record, report, one.selected)
        made.append({**row, "tags": f"rounds={len(one.us)}"})
    return made


def append(path: Path, columns: Sequence[str], made: Sequence[Row]) -> None:
    """Append all rows of a problem at once: a problem with any row is done."""
    text = io.StringIO()
    csv.DictWriter(text, columns, lineterminator="\n").writerows(made)
    with path.open("a", encoding="utf-8") as file:
        file.write(text.getvalue())
