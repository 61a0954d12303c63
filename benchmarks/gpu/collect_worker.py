"""One process of collect.py: measures kernels on problems until its time is over, problem by problem into CSV files.

What it is about to launch stands in a file, so that collect.py knows which kernel a hang or a crash belongs to.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from cublaslt import CublasLt
from references import plain_calls
from sweep import plain
from timing import TFLOPS, Call, Operands, environment, operand_sets, poison

from kernelwright.arch import load
from kernelwright.dispatch import (
    Dispatcher,
    GemmProblem,
    Heuristic,
    KernelEntry,
    KernelLibrary,
    KernelwrightError,
    Plan,
)
from kernelwright.tile_engine.problems.registry import problems
from kernelwright.tile_engine.registry import measurable
from kernelwright.tile_engine.results.csv_file import CsvFile, read_rows
from kernelwright.tile_engine.results.row import Row, Table

SAMPLE_US, MOST_CALLS = 200.0, 80  # that one time is taken over
AHEAD_CLOCKS = 60_000  # 30 us
GRAPH_US = 40.0  # of a launch: longer ones need no graph, as the host is ahead of them
ROUNDS, FEW_ROUNDS, LONG_US = 4, 3, 300.0  # fewer rounds of long launches
CHOICE_ROUNDS = 7  # where only choices are compared
FAR_PREDICTED, FAR = 2.0, 2.0  # long launches that are so many times slower are not timed, by prediction and in truth
NEAR = 1.25  # a kernel so many times slower than the fastest one is timed once
SLICES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
REFERENCE = "reference"  # status of rows that are no kernels of the library
SLOW = "slow"  # status of kernels that are too far behind to be timed
HEURISTICS = 8  # of cuBLASLt's choices
_KEPT_BYTES = 60 << 30  # of torch's allocator, before memory goes back

GEMM = measurable("gemm")


@dataclass
class Candidate:
    """A call on one problem, and what came of it."""

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
        """What it is known by in rows; references by their names."""
        return self.identity or self.name, self.choices


class Library:
    """A library with a dispatcher that chooses, and one for each of its plain kernels."""

    def __init__(self, folder: Path, selection: str | Heuristic = "analytic") -> None:
        """Load it."""
        self.loaded = KernelLibrary.load(folder)
        self._chooser = Dispatcher([self.loaded], device="cuda:0", selection=selection)
        self._single: dict[str, Dispatcher] = {}

    def candidates(self, problem: GemmProblem, sets: Sequence[Operands], long: bool) -> Iterator[Candidate]:
        """Every plain kernel, split-K kernels with the number of slices that the dispatcher takes and its neighbours.

        The dispatcher's choice is marked. Of ``long`` launches those that it predicts to be far behind are left out.
        """
        chosen = self.chosen(problem, sets)
        predicted = self._predicted(problem)
        least = min(predicted.values(), default=0.0)
        for kernel in self.loaded.kernels:
            if not plain(kernel, problem.dtype_a) or kernel.identity not in predicted:
                continue
            if long and predicted[kernel.identity] > FAR_PREDICTED * least:
                continue
            own = self._plan(kernel, problem)
            if own is None:
                continue
            yield self._marked(own, sets, chosen)
            for slices in _neighbours(_slices(own)) if kernel.spec.get("split_k") else ():
                plan = self._plan(kernel, replace(problem, split_k=slices))
                if plan is not None:
                    yield self._marked(plan, sets, chosen)

    def chosen(self, problem: GemmProblem, sets: Sequence[Operands]) -> Candidate | None:
        """The dispatcher's choice; None where no kernel serves the problem."""
        try:
            return _candidate(self._chooser.plan(problem), sets)
        except KernelwrightError:
            return None

    def _marked(self, plan: Plan, sets: Sequence[Operands], chosen: Candidate | None) -> Candidate:
        made = _candidate(plan, sets)
        made.selected = chosen is not None and made.key == chosen.key
        return made

    def _predicted(self, problem: GemmProblem) -> dict[str, float]:
        """Microseconds by identity."""
        ranked = self._chooser.explain(problem)
        return {kernel.identity: kernel.estimate.total_us for kernel in ranked if kernel.estimate is not None}

    def _plan(self, kernel: KernelEntry, problem: GemmProblem) -> Plan | None:
        if kernel.identity not in self._single:
            self._single[kernel.identity] = Dispatcher([self.loaded], device="cuda:0", selection=kernel.identity)
        try:
            return self._single[kernel.identity].plan(problem)
        except KernelwrightError:
            return None


def _neighbours(slices: int) -> Iterator[int]:
    """The numbers of slices below and above, of those in SLICES."""
    yield from [one for one in SLICES if one < slices][-1:]
    yield from [one for one in SLICES if one > slices][:1]


def _slices(plan: Plan) -> int:
    return int(dict(choice.split("=") for choice in plan.choices.split())["split_k"])


def _candidate(plan: Plan, sets: Sequence[Operands]) -> Candidate:
    workspace = torch.empty(max(plan.workspace_bytes, 16), dtype=torch.uint8, device="cuda")

    def call(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        stream = torch.cuda.current_stream().cuda_stream
        plan(a.data_ptr(), b.data_ptr(), out=out.data_ptr(), stream=stream, workspace=workspace.data_ptr())

    return Candidate(plan.kernel.name, call, plan.kernel.identity, plan.choices)


class Measurement:
    """Measures problems of one dtype, and tells ``mark`` what it is about to launch."""

    def __init__(
        self, library: Library, others: Mapping[str, Library], lt: CublasLt | None, mark: Callable[..., None]
    ) -> None:
        """``others``: by name, libraries of which the dispatcher's choice is timed as a reference.

        With ``lt`` only the library's choice is timed, beside torch and cuBLASLt; else every kernel, beside torch.
        """
        self._library, self._others, self._lt, self._mark = library, others, lt, mark

    def run(self, problem: GemmProblem, skipped: set[tuple[str, str]]) -> list[Candidate]:
        """Every candidate and reference that computes the product, fastest kernels timed in several rounds."""
        m, n, k, dtype = problem.m, problem.n, problem.k, problem.dtype_a
        sets: list[Operands] = operand_sets(m, n, k, dtype)
        whole = _whole_numbers(sets[0], dtype)
        # The first set holds whole numbers while calls are compared, and random ones while they are timed.
        random_a, random_b = sets[0][0].clone(), sets[0][1].clone()
        sets[0][0].copy_(whole[0])
        sets[0][1].copy_(whole[1])
        expected = _exact_product(*whole, sets[0][2].dtype)
        size = 1 if dtype == "fp8" else 2
        us = max(2e-6 * m * n * k / TFLOPS[dtype], size * (m * k + n * k + m * n) / 4e6, 2.5)
        found = []
        for one in [*self._candidates(problem, sets, us > LONG_US), *self._references(problem, sets)]:
            if one.key in skipped:
                continue
            self._mark(*one.key)
            self._compare(one, sets[0][2], expected)
            found.append(one)
        sets[0][0].copy_(random_a)
        sets[0][1].copy_(random_b)
        if us > LONG_US:
            _leave_slow(found)
        self._time([one for one in found if one.status in ("ok", REFERENCE)], us)
        return found

    def _candidates(self, problem: GemmProblem, sets: list[Operands], long: bool) -> Iterator[Candidate]:
        if self._lt is None:
            yield from self._library.candidates(problem, sets, long)
            return
        chosen = self._library.chosen(problem, sets)
        if chosen is not None:
            chosen.selected = True
            yield chosen

    def _references(self, problem: GemmProblem, sets: list[Operands]) -> Iterator[Candidate]:
        dtype = problem.dtype_a
        for name, call in plain_calls(sets, dtype).items():
            yield Candidate(f"torch: {name}", call, status=REFERENCE)
        for name, library in self._others.items():
            chosen = library.chosen(problem, sets)
            if chosen is not None:
                yield Candidate(f"{name}: {chosen.name}", chosen.call, choices=chosen.choices, status=REFERENCE)
        if self._lt is not None:
            try:
                calls = self._lt.calls(sets, dtype, HEURISTICS)
            except RuntimeError as error:
                print(f"cuBLASLt: {error}", flush=True)
                calls = []
            for number, call in enumerate(calls):
                yield Candidate(f"cuBLASLt: {number}", call, status=REFERENCE)

    def _compare(self, one: Candidate, out: torch.Tensor, expected: torch.Tensor) -> None:
        poison(out)
        start, end = _event(), _event()
        try:
            start.record()
            one.call(0)
            end.record()
        except (RuntimeError, TypeError) as error:
            if one.status != REFERENCE or "CUDA error" in str(error):
                raise
            one.status, one.reason = "refused", str(error).partition("\n")[0]  # torch refuses some extents
            return
        if not torch.equal(out, expected):
            one.status, one.reason = "wrong", "differs from the product of whole numbers"
        one.first_us = float(start.elapsed_time(end)) * 1e3

    def _time(self, calls: Sequence[Candidate], us: float) -> None:
        count = max(1, min(MOST_CALLS, int(SAMPLE_US / us)))
        for one in calls:
            self._mark(*one.key)
            one.sample = _sampler(one.call, count, us < GRAPH_US)
            one.us = [one.sample()]
        fastest = min((one.us[0] for one in calls if one.identity), default=0.0)
        near = [one for one in calls if not one.identity or one.selected or one.us[0] < NEAR * fastest]
        for one in near:
            one.us = []
        rounds = CHOICE_ROUNDS if self._lt is not None else ROUNDS
        for turn in range(rounds if us < LONG_US else FEW_ROUNDS):
            for one in near[turn % max(len(near), 1) :] + near[: turn % max(len(near), 1)]:
                self._mark(*one.key)
                one.us.append(one.sample())
        for one in calls:
            one.sample = None


def _leave_slow(found: Sequence[Candidate]) -> None:
    """Kernels whose first launch was far slower than the fastest one's are not timed."""
    least = min((one.first_us for one in found if one.identity and one.status == "ok"), default=0.0)
    for one in found:
        if one.identity and one.status == "ok" and not one.selected and one.first_us > FAR * least:
            one.status, one.reason = SLOW, f"the first launch took more than {FAR:g} times as long as the fastest"


def _whole_numbers(like: Operands, dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A and B of whole numbers up to 2: sums stay exact in the accumulators of fp8 tensor cores too."""
    a, b = (torch.randint(-2, 3, x.shape, device="cuda", dtype=torch.int8).bfloat16() for x in like[:2])
    return a.to(like[0].dtype), b.to(like[1].dtype)


def _exact_product(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """By torch's product of that type (fp16 or bf16), whose sums are whole numbers in fp32, rounded once."""
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    found = a.to(dtype) @ b.to(dtype).T
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    return found


def _captured(call: Call, count: int) -> Any:
    """A graph of ``count`` calls. Captured without torch.cuda.graph, which empties the allocator each time."""
    graph = torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    graph.capture_begin()
    for number in range(count):
        call(number)
    graph.capture_end()
    return graph


def _sampler(call: Call, count: int, small: bool) -> Callable[[], float]:
    """Takes the time of a launch over ``count`` of them, in microseconds; of ``small`` launches in a graph."""
    if not small:

        def launch() -> None:
            for number in range(count):
                call(number)

        return lambda: _spent(launch, count)
    graph = _captured(call, count)
    graph.replay()  # the first replay uploads it
    return lambda: _spent(graph.replay, count)


def _spent(work: Callable[[], object], count: int) -> float:
    start, end = _event(), _event()
    torch.cuda._sleep(AHEAD_CLOCKS)  # the device waits until the host has launched, so that no launch is waited for
    start.record()
    work()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / count * 1e3


def _event() -> Any:
    return torch.cuda.Event(enable_timing=True)


def rows(table: Table, index: int, record: Mapping[str, Any], found: Sequence[Candidate]) -> list[Row]:
    """The rows of a problem."""
    made = []
    for one in found:
        report = {"kernel": one.identity, "status": one.status, "reason": one.reason, "choices": one.choices}
        times = [statistics.median(one.us), min(one.us), max(one.us)] if one.us else None
        report["latency_ms"] = times and [us / 1e3 for us in times]
        row = table.row(one.name, index, record, report, one.selected)
        made.append({**row, "tags": f"rounds={len(one.us)}"})
    return made


def _append(path: Path, columns: Sequence[str], made: Sequence[Row]) -> None:
    """All rows of a problem at once: a problem that has any is done."""
    text = io.StringIO()
    csv.DictWriter(text, columns, lineterminator="\n").writerows(made)
    with path.open("a", encoding="utf-8") as file:
        file.write(text.getvalue())


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--shipped", type=Path)
    parser.add_argument("--learned", type=Path, help="a compiled model: the choices by it, as references")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--choices", action="store_true", help="only the dispatcher's choice, with cuBLASLt's")
    parser.add_argument("--job", action="append", required=True, help="KEY=UNIX_SECONDS: problems, and when to stop")
    options = parser.parse_args()
    marker = (options.out / "current").open("w")

    def mark(*words: object) -> None:
        marker.seek(0)
        marker.write(json.dumps([time.time(), *words]) + "\n")
        marker.truncate()
        marker.flush()

    library = Library(options.library)
    others = {"shipped": Library(options.shipped)} if options.shipped else {}
    if options.learned:
        others["learned"] = Library(options.library, Heuristic(options.learned))
    (options.out / "environment.json").write_text(json.dumps(environment(options.library), indent=1) + "\n")
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()  # noqa: UP017 - Python 3.10 too
    table = Table(GEMM, load(library.loaded.arch), "cuda:0", today)
    torch.manual_seed(0)
    lt = CublasLt() if options.choices else None
    torch.cuda.set_stream(torch.cuda.Stream())  # graphs are captured where calls ran before: workspaces exist there
    lost = [json.loads(line) for line in (options.out / "lost").read_text().splitlines()]
    for job in options.job:
        key, _, end = job.partition("=")
        path = options.out / f"{key}.csv"
        CsvFile(path, table.columns, append=True).__exit__(None, None, None)
        records = problems(GEMM, key)
        order = list(range(len(records)))
        random.Random(0).shuffle(order)  # so that what is measured when time is over is a fair part
        done = {int(row["problem_idx"]) for row in read_rows(path) if row["status"] not in ("crashed", "timeout")}
        for number, index in enumerate(order):
            if index in done:
                continue
            if time.time() > float(end):
                print(f"{key}: time is over after {number} of {len(order)} problems", flush=True)
                break
            gone = {(one["identity"], one["choices"]) for one in lost if (one["job"], one["problem"]) == (key, index)}
            if ("", "") in gone:
                continue  # the process ended before any kernel of this problem was launched
            measurement = Measurement(library, others, lt, lambda *what, at=(key, index): mark(*at, *what))
            mark(key, index, "", "")
            record = records[index]
            found = measurement.run(GEMM.problem(record), gone)
            known = {kernel.identity: kernel.name for kernel in library.loaded.kernels}
            found += [
                Candidate(known.get(what, what), print, what if what in known else "", choices, status="crashed")
                for what, choices in gone
            ]
            _append(path, table.columns, rows(table, index, record, found))
            if torch.cuda.memory_reserved() > _KEPT_BYTES:
                torch.cuda.empty_cache()
            if number % 20 == 0:
                print(f"{key}: {number} of {len(order)}, {len(found)} calls on {dict(record)}", flush=True)
        else:
            print(f"{key}: all {len(order)} problems", flush=True)


if __name__ == "__main__":
    _main()
