"""One table of two runs: kernels that were measured again take the place of what an earlier run measured of them.

``python benchmarks/selection/join.py OLD.csv.gz NEW.csv.gz --replace splitk --out JOINED.csv.gz`` takes the rows of the
old table whose kernels' names do not contain the word, and of the new one those whose names do, on the problems that
both have. Clocks differ between runs, so times of the new run are multiplied by what torch's fastest call took in the
old one over what it took in the new one, problem by problem.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from kernelwright.tile_engine.results.csv_file import read_rows

Row = Mapping[str, str]
EXTENTS = ("m", "n", "k")
TIMES = ("latency_ms", "latency_min_ms", "latency_max_ms")


def problem(row: Row) -> tuple[str, ...]:
    """The fields that distinguish problems in tables of one element type."""
    return tuple(row[name] for name in EXTENTS)


def references(rows: Iterable[Row]) -> dict[tuple[str, ...], float]:
    """Milliseconds of torch's fastest call by problem."""
    fastest: dict[tuple[str, ...], float] = {}
    for row in rows:
        if row["kernel"].startswith("torch") and row["latency_ms"]:
            fastest[problem(row)] = min(fastest.get(problem(row), float("inf")), float(row["latency_ms"]))
    return fastest


def joined(old: Sequence[Row], new: Sequence[Row], word: str) -> Iterator[Row]:
    """The rows of the joined table. Problems that torch does not serve keep their times."""
    both = {problem(row): row["problem_idx"] for row in old}
    both = {key: both[key] for key in map(problem, new) if key in both}
    before, after = references(old), references(new)
    for row in old:
        if problem(row) in both and word not in row["kernel"]:
            yield row
    for row in new:
        key = problem(row)
        if key not in both or word not in row["kernel"]:
            continue
        scale = before[key] / after[key] if key in before and key in after else 1.0
        times = {name: f"{float(row[name]) * scale:.5g}" for name in TIMES if row[name]}
        rate = {"tflops": f"{float(row['tflops']) / scale:.4g}"} if row["tflops"] else {}
        yield {**row, **times, **rate, "problem_idx": both[key], "selected": ""}


def main() -> None:
    """Write the joined table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--replace", required=True, metavar="WORD", help="of the names of kernels that the new run has")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    new = read_rows(options.new)
    rows = sorted(joined(read_rows(options.old), new, options.replace), key=lambda row: int(row["problem_idx"]))
    columns = list(new[0])
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    options.out.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))
    print(f"{options.out}: {len({row['problem_idx'] for row in rows})} problems, {len(rows)} rows")


if __name__ == "__main__":
    main()
