"""How near the dispatcher's choices come to the fastest kernel and value, by the tables of ``collect.py``, as JSON.

``python benchmarks/cpu/sweep/evaluate.py DIR --units 4 --library gemm=lib --shipped gemm=lib/shipped --out F.json``
needs no quiet machine: the dispatcher predicts for ``--units`` threads, and what it chooses is looked up. ``--library``
is the one that was measured. A share is the time of the fastest pair of a kernel and a number
of slices or splits over that of the choice. "best of 3" is what measuring the three pairs of the highest rank again
reaches. Beside all kernels stand those that ship, alone: how near choices come to the best of these, and how near that
one comes to the best of all. Problems that one kernel serves in one way leave nothing to choose; they are counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from results_file import text

from kernelwright.dispatch import Device, Dispatcher, Heuristic, KernelLibrary
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.problems.registry import operation_of
from kernelwright.tile_engine.registry import measurable
from kernelwright.tile_engine.results.csv_file import read_rows

TOP = (1, 3, 5)
Pair = tuple[str, str]
"""Identity and choices."""
Times = dict[Pair, float]


def read(
    folder: Path, key: str, operation: Measurable, column: str, status: Counter[str]
) -> list[tuple[Record, Times]]:
    """Problems of a key with the times of correct kernels; ``status`` counts rows."""
    times: dict[str, Times] = defaultdict(dict)
    records: dict[str, Record] = {}
    for table in sorted([*folder.glob(f"{key}.*.csv"), *folder.glob(f"{key}.*.csv.gz"), *folder.glob(f"{key}.csv.gz")]):
        for row in read_rows(table):
            status[row["status"]] += 1
            if row["status"] in ("ok", "slow") and row["latency_ms"]:
                cells = {name: row[name] for name in operation.columns}
                records[row["problem_idx"]] = operation.read({name: _value(cell) for name, cell in cells.items()})
                times[row["problem_idx"]][row["identity"], row["choices"]] = float(row[column])
    return [(records[number], times[number]) for number in records]


def _value(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def ranking(dispatcher: Dispatcher, problem: Any, times: Times) -> list[Pair]:
    """Measured pairs, best first."""
    ranked = []
    for stage in dispatcher.explain(problem).stages:
        ranked += [(kernel.identity, value.choices) for kernel, value in stage.pairs]
    return [pair for pair in ranked if pair in times]


def group_of(operation: str, record: Record) -> str:
    """The direction of a convolution; for attention forward, with decoding as a separate group."""
    direction = str(record.get("direction", ""))
    if operation == "attention" and direction == "forward":
        direction = "decode" if record["seqlen_q"] <= 3 and record["page_size"] else "prefill"
    return " ".join(filter(None, (operation, record["dtype"], direction)))


def summary(shares: Sequence[Sequence[float]]) -> dict[str, Any]:
    """Means and quantiles of the problems' fractions, which are listed by rank of the pair."""
    first = sorted(one[0] for one in shares)
    return {
        "problems": len(first),
        "mean": round(statistics.fmean(first), 4),
        "median": round(statistics.median(first), 4),
        "p10": round(first[max(0, -(-len(first) // 10) - 1)], 4),
        "min": round(first[0], 4),
        "fastest": sum(share == 1.0 for share in first),
        "best of": {str(k): round(statistics.fmean(max(one[:k]) for one in shares), 4) for k in TOP},
    }


class Evaluation:
    """Two dispatchers for one operation: one with the measured library, one with the shipped one."""

    def __init__(self, library: Path, shipped: Path | None, device: Device, model: Path | None) -> None:
        """``model``: a compiled model; without one, predicted times choose."""
        selection: Any = Heuristic(model) if model else "analytic"
        self._all = Dispatcher([KernelLibrary.load(library)], device=device, selection=selection)
        self._shipped = {kernel.identity for kernel in KernelLibrary.load(shipped).kernels} if shipped else None
        self.groups: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        self.low: list[tuple[float, Record, Pair, Pair]] = []

    def add(self, operation: Measurable, record: Record, times: Times) -> None:
        """Add one problem."""
        group = self.groups[group_of(operation.name, record)]
        ranked = ranking(self._all, operation.problem(record), times)
        best = min(times, key=times.__getitem__)
        if len(ranked) > 1:
            group["all"].append([times[best] / times[pair] for pair in ranked])
            self.low.append((times[best] / times[ranked[0]], record, ranked[0], best))
        else:
            group["one way only"].append(0)
        own = [pair for pair in ranked if self._shipped is not None and pair[0] in self._shipped]
        if own:
            least = min(times[pair] for pair in own)
            group["reach"].append(times[best] / least)
            if len(own) > 1:
                group["shipped"].append([least / times[pair] for pair in own])

    def results(self) -> list[dict[str, Any]]:
        """Results by group."""
        made = []
        for name, parts in sorted(self.groups.items()):
            one: dict[str, Any] = {"name": name, "one way only": len(parts["one way only"])}
            one |= {part: summary(parts[part]) for part in ("all", "shipped") if parts[part]}
            if parts["reach"]:
                one["best that ships of best of all"] = round(statistics.geometric_mean(parts["reach"]), 4)
            made.append(one)
        return made


def named(values: Sequence[str]) -> dict[str, Path]:
    """Parse OPERATION=FOLDER arguments."""
    return {name: Path(folder) for name, _, folder in (value.partition("=") for value in values)}


def main() -> None:
    """Evaluate, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--part", default="held-out,validation", help="words that keys have, separated by commas")
    parser.add_argument("--units", type=int, required=True)
    parser.add_argument("--features", help="of the machine that was measured; those of this one unless stated")
    parser.add_argument("--library", action="append", required=True)
    parser.add_argument("--shipped", action="append", default=[])
    parser.add_argument("--model", action="append", default=[], help="OPERATION=FILE, a compiled model")
    parser.add_argument("--worst", type=int, default=6)
    parser.add_argument("--least", action="store_true", help="evaluate by the least times of rounds instead of medians")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    shipped, models = named(options.shipped), named(options.model)
    device = Device("cpu", compute_units=options.units, features=options.features)
    status: Counter[str] = Counter()
    column = "latency_min_ms" if options.least else "latency_ms"
    every: list[dict[str, Any]] = []
    keys = sorted({path.name.partition(".")[0] for path in options.folder.glob("*.csv*")})
    for name, library in named(options.library).items():
        operation, evaluation = measurable(name), Evaluation(library, shipped.get(name), device, models.get(name))
        for key in keys:
            if operation_of(key) == name and any(word in key for word in options.part.split(",")):
                for record, times in read(options.folder, key, operation, column, status):
                    evaluation.add(operation, record, times)
        every += evaluation.results()
        for share, record, chosen, best in sorted(evaluation.low, key=lambda one: one[0])[: options.worst]:
            print(f"{share:.3f} {_short(record)} chose {chosen}, best {best}")
    for one in every:
        print(json.dumps(one))
    if options.out:
        machines = [json.loads(path.read_text()) for path in sorted(options.folder.glob("machine.*.json"))]
        head: Mapping[str, Any] = {"machines": machines, "rows": dict(status), "units": options.units, "times": column}
        options.out.write_text(text(dict(head), every, "groups"))


def _short(record: Record) -> str:
    return " ".join(f"{key}={value}" for key, value in record.items() if value not in (0, "", -1, "none"))


if __name__ == "__main__":
    main()
