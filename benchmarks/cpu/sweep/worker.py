"""One process of collect.py: measures its share of the problems until its time is over, problem by problem.

What it is about to launch stands in a file, so that collect.py knows which kernel a hang or a crash belongs to.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from calls import Call, Library, measured, rows

from kernelwright.arch import load
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.problems.registry import operation_of, problems
from kernelwright.tile_engine.registry import measurable
from kernelwright.tile_engine.results.csv_file import CsvFile, read_rows
from kernelwright.tile_engine.results.row import Row, Table


@dataclass
class Job:
    """A set of problems: its table, the problems it may have, in shuffled order, and those it has."""

    key: str
    operation: Measurable
    path: Path
    order: list[int]
    records: Sequence[Record]


def jobs_of(stated: Sequence[dict[str, Any]], out: Path, worker: int, workers: int) -> Iterator[tuple[float, int, Job]]:
    """Each job's problems for this worker that have no row yet, with their indices in the common order."""
    for turn, one in enumerate(stated):
        key = one["key"]
        operation = measurable(operation_of(key))
        records = problems(operation, key)
        small = [
            index
            for index, record in enumerate(records)
            if operation.flops(record) <= one["operations"] and operation.bytes_moved(record) <= one["bytes"]
        ][:: one.get("every", 1)]
        random.Random(0).shuffle(small)
        path = out / f"{key}.{worker}.csv"
        done = {int(row["problem_idx"]) for each in out.glob(f"{key}.*.csv") for row in read_rows(each)}
        job = Job(key, operation, path, small, records)
        for place, index in enumerate(small):
            if place % workers == worker and index not in done:
                yield one.get("turn", 0) + place / len(small) + 1e-6 * turn, index, job


def append(path: Path, columns: Sequence[str], made: Sequence[Row]) -> None:
    """Append all rows of a problem at once: a problem with any row is done."""
    CsvFile(path, columns, append=True).__exit__(None, None, None)
    text = io.StringIO()
    csv.DictWriter(text, columns, lineterminator="\n").writerows(made)
    with path.open("a", encoding="utf-8") as file:
        file.write(text.getvalue())


def main() -> None:
    """Measure until all problems are done or the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--worker", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--end", type=float, required=True, help="seconds since 1970")
    options = parser.parse_args()
    stated = json.loads(options.jobs.read_text())
    marker = (options.out / f"current.{options.worker}").open("w")

    def mark(*words: object) -> None:
        marker.seek(0)
        marker.write(json.dumps(words) + "\n")
        marker.truncate()
        marker.flush()

    libraries = {name: Library(Path(folder)) for name, folder in stated["libraries"].items()}
    lost = [json.loads(line) for line in (options.out / "lost").read_text().splitlines()]
    today = datetime.date.today().isoformat()
    todo = sorted(jobs_of(stated["jobs"], options.out, options.worker, options.workers), key=lambda one: one[:2])
    for number, (_, index, job) in enumerate(todo):
        if time.time() > options.end:
            print(f"worker {options.worker}: time is over after {number} of {len(todo)} problems", flush=True)
            return
        gone = {(one[2], one[3]) for one in lost if one[:2] == [job.key, index]}
        mark(job.key, index, "", "")
        library = libraries[job.operation.name]
        record = job.records[index]
        table = Table(job.operation, load(library.loaded.arch), "cpu", today)
        calls = (
            []
            if ("", "") in gone
            else measured(library, job.operation, record, gone, lambda *what, at=(job.key, index): mark(*at, *what))
        )
        calls += [Call("", identity, choices, (), print, False, "crashed") for identity, choices in gone]
        append(job.path, table.columns, rows(table, index, record, calls))
    print(f"worker {options.worker}: all of {len(todo)} problems", flush=True)


if __name__ == "__main__":
    main()
