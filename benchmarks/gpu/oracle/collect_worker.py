"""One process of collect.py: measures kernels on problems until its time is over, problem by problem into CSV files.

What it is about to launch stands in a file, so that collect.py knows which kernel a hang or a crash belongs to.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import torch
from collect_attention import PosedAttention
from collect_conv import PosedConv
from collect_gemm import GemmOracle, Library
from collecting import Candidate, Kernels, Mark, Oracle, append, rows
from cublaslt import CublasLt
from timing import environment

from kernelwright.arch import load
from kernelwright.dispatch import Heuristic
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.problems.registry import operation_of, problems
from kernelwright.tile_engine.registry import measurable
from kernelwright.tile_engine.results.csv_file import CsvFile, read_rows
from kernelwright.tile_engine.results.row import Table

_KEPT_BYTES = 60 << 30  # in torch's allocator, before memory is released


class Measuring(Protocol):
    """Measures problems of an operation."""

    def run(self, record: Record, skipped: set[tuple[str, str]]) -> list[Candidate]:
        """Every launched candidate; ``skipped`` are identities and choices of those lost earlier."""


def _oracle(options: argparse.Namespace, operation: Measurable, mark: Mark) -> tuple[Kernels, Measuring]:
    """The library, and the object that measures it."""
    if operation.name == "gemm":
        library = Library(options.library)
        others = {"shipped": Library(options.shipped)} if options.shipped else {}
        if options.learned:
            others["learned"] = Library(options.library, _selection(options.learned))
        return library, GemmOracle(library, others, CublasLt() if options.choices else None, mark)
    kernels = Kernels(options.library)
    learned = Kernels(options.library, _selection(options.learned)) if options.learned else None

    def pose(record: Record) -> Any:
        return PosedConv(operation.problem(record)) if operation.name == "convolution" else PosedAttention(record)

    return kernels, Oracle(kernels, operation, pose, mark, learned)


def _selection(learned: str) -> str | Heuristic:
    """A compiled model, or the models contained in a library."""
    return learned if learned == "auto" else Heuristic(learned)


def _operation(jobs: Sequence[str]) -> Measurable:
    """The operation of all keys. Raises ValueError for several: a library has kernels of one operation."""
    names = {operation_of(job.partition("=")[0]) for job in jobs}
    if len(names) != 1:
        raise ValueError(f"the sets of problems are of {', '.join(sorted(names))}; collect one operation at a time")
    return measurable(names.pop())


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--shipped", type=Path)
    parser.add_argument(
        "--learned", help="a compiled model, or auto for the library's own: choices by it, as references"
    )
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

    at: list[object] = []  # the set and the number of the problem
    operation = _operation(options.job)
    library, oracle = _oracle(options, operation, lambda *what: mark(*at, *what))
    (options.out / "environment.json").write_text(json.dumps(environment(options.library), indent=1) + "\n")
    today = datetime.datetime.now(datetime.timezone.utc).date().isoformat()  # noqa: UP017 - Python 3.10 too
    table = Table(operation, load(library.loaded.arch), "cuda:0", today)
    torch.manual_seed(0)
    torch.cuda.set_stream(torch.cuda.Stream())  # graphs are captured where calls ran before: workspaces exist there
    lost = [json.loads(line) for line in (options.out / "lost").read_text().splitlines()]
    for job in options.job:
        key, _, end = job.partition("=")
        path = options.out / f"{key}.csv"
        CsvFile(path, table.columns, append=True).__exit__(None, None, None)
        records = problems(operation, key)
        order = list(range(len(records)))
        random.Random(0).shuffle(order)  # so that an interrupted run measures a fair sample
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
            at[:] = key, index
            mark(key, index, "", "")
            record = records[index]
            candidates = oracle.run(record, gone)
            known = {kernel.identity: kernel.name for kernel in library.loaded.kernels}
            candidates += [
                Candidate(known.get(what, what), print, what if what in known else "", choices, status="crashed")
                for what, choices in gone
            ]
            append(path, table.columns, rows(table, index, record, candidates))
            if torch.cuda.memory_reserved() > _KEPT_BYTES:
                torch.cuda.empty_cache()
            if number % 20 == 0:
                print(f"{key}: {number} of {len(order)}, {len(candidates)} calls on {dict(record)}", flush=True)
        else:
            print(f"{key}: all {len(order)} problems", flush=True)


if __name__ == "__main__":
    _main()
