"""How near the dispatcher's choices come to the fastest kernel and number of slices: convolution and attention.

``python benchmarks/selection/oracle.py TABLE.csv.gz … --library FOLDER --set convolution:essential --out
result.json`` reads tables that ``benchmarks/gpu/collect.py`` wrote. It needs no GPU: the dispatcher predicts, and
what it chooses is looked up in the tables. ``--library`` is the library that was measured. A share is the time of the
fastest kernel, with the best number of slices, over that of the choice. What is ranked are pairs of a kernel and a
number of slices: ``best of the first 3`` is what measuring the three pairs of the highest rank again reaches.
``--set`` evaluates the kernels of a set alone too, ``--model`` ranks by a compiled model. Problems that one kernel in
one way serves leave nothing to choose; they are counted, and no share is of them. Where the collector timed a model's
choices too, what these reached in that very run is said apart.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.dispatch import Device, Dispatcher, Heuristic, KernelLibrary
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.registry import measurable
from kernelwright.tile_engine.results.csv_file import read_rows

ARCH = "sm_90a"
TOP = 3
REFERENCE, LEARNED = "reference", "learned: "  # rows of choices: their status, and their prefix
WORST = 8  # number of problems to print
Times = dict[tuple[str, str], float]
"""Milliseconds by identity and choices."""


def read(tables: Iterable[Path], operation: Measurable) -> list[tuple[Record, Times]]:
    """Problems with the times of correct kernels."""
    problems: list[tuple[Record, Times]] = []
    for table in tables:
        times: dict[str, Times] = defaultdict(dict)
        records: dict[str, Record] = {}
        for row in read_rows(table):
            if row["status"] == "ok" and row["latency_ms"]:
                cells = {name: row[name] for name in operation.columns}
                records[row["problem_idx"]] = operation.read({key: _value(cell) for key, cell in cells.items()})
                times[row["problem_idx"]][row["identity"], row["choices"]] = float(row["latency_ms"])
        problems += [(records[number], times[number]) for number in records]
    return problems


def same_run(tables: Iterable[Path], operation: Measurable) -> dict[str, Any]:
    """Efficiency of a learned model's choices that were timed in turns with all kernels: ``collect.py --learned``."""
    by: dict[str, list[list[float]]] = defaultdict(list)
    for table in tables:
        fastest: dict[str, list[float]] = defaultdict(list)
        chosen: dict[str, tuple[float, Record]] = {}
        for row in read_rows(table):
            if row["status"] == "ok" and row["latency_ms"]:
                fastest[row["problem_idx"]].append(float(row["latency_ms"]))
            elif row["status"] == REFERENCE and row["kernel"].startswith(LEARNED) and row["latency_ms"]:
                record = operation.read({name: _value(row[name]) for name in operation.columns})
                chosen[row["problem_idx"]] = float(row["latency_ms"]), record
        for number, (ms, record) in chosen.items():
            if len(fastest[number]) > 1:
                for group in ("all", _group(record)):
                    by[group].append([min(1.0, min(fastest[number]) / ms)])
    return {group: evaluation(reached) for group, reached in by.items()}


def _value(cell: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError:
        return cell


def ranking(dispatcher: Dispatcher, problem: Any, measured: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of kernel and choices, best first, for the stage of the measured kernels."""
    known = set(measured)
    for stage in dispatcher.explain(problem).stages:
        ranked = [(kernel.identity, value.choices) for kernel, value in stage.pairs]
        if known.intersection(identity for identity, _ in ranked):
            return ranked
    return []


def shares(ranked: Sequence[tuple[str, str]], times: Times) -> list[float] | None:
    """The fraction for each ranked pair whose kernel has a time; None if there is nothing to choose.

    A number of slices without a time counts with the slower of its two neighbours.
    """
    if len(times) < 2:
        return None
    best, reached = min(times.values()), []
    for identity, choices in ranked:
        own = {_slices(all_): ms for (one, all_), ms in times.items() if one == identity}
        if not own and not reached:
            raise ValueError(f"the choice {identity} {choices} was not measured")
        if own:
            wanted = _slices(choices)
            beside = [
                max((n for n in own if n <= wanted), default=None),
                min((n for n in own if n >= wanted), default=None),
            ]
            reached.append(best / max(own[n] for n in beside if n is not None))
    return reached


def _slices(choices: str) -> int:
    """The number of slices or splits; 1 if there is none."""
    counts = dict(choice.split("=") for choice in choices.split())
    return int(counts.get("split_k", counts.get("num_splits", 1)))


def evaluation(reached: Sequence[list[float]]) -> dict[str, Any]:
    """Mean, median, tenth percentile, minimum; how often the first is the fastest; the best of the first few."""
    first = sorted(one[0] for one in reached)
    return {
        "problems": len(first),
        "mean": round(statistics.fmean(first), 4),
        "median": round(statistics.median(first), 4),
        "p10": round(first[max(0, -(-len(first) // 10) - 1)], 4),
        "min": round(first[0], 4),
        "fastest": sum(share == 1.0 for share in first),
        f"best of the first {TOP}": round(statistics.fmean(max(one[:TOP]) for one in reached), 4),
    }


def evaluate(
    problems: Sequence[tuple[Record, Times]], operation: Measurable, dispatcher: Dispatcher, members: set[str] | None
) -> dict[str, Any]:
    """Evaluate by direction and overall; ``members``: identities of the only kernels considered."""
    by: dict[str, list[list[float]]] = defaultdict(list)
    single, low = 0, []
    for record, measured in problems:
        times = {key: ms for key, ms in measured.items() if members is None or key[0] in members}
        every = ranking(dispatcher, operation.problem(record), [identity for identity, _ in times])
        reached = shares([one for one in every if members is None or one[0] in members], times)
        if reached is None:
            single += bool(times)
            continue
        for group in ("all", _group(record)):
            by[group].append(reached)
        low.append((reached[0], record, min(times, key=times.__getitem__)))
    for share, record, best in sorted(low, key=lambda one: one[0])[:WORST]:
        print(f"  {share:.3f} best {best}: {' '.join(f'{key}={value}' for key, value in record.items() if value)}")
    return {"one way only": single, **{group: evaluation(reached) for group, reached in by.items()}}


def _group(record: Mapping[str, Any]) -> str:
    """The direction; for attention forward, with decoding as a separate group."""
    if record["direction"] == "forward" and record.get("seqlen_q", 0):
        return "decode" if record["seqlen_q"] <= 3 and record["page_size"] else "prefill"
    return str(record["direction"])


def main() -> None:
    """Print the evaluations, write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--library", type=Path, required=True, help="the folder of the library that was measured")
    parser.add_argument("--operation", default="convolution", choices=("convolution", "attention"))
    parser.add_argument("--set", default=[], nargs="+", help="kernel sets, such as convolution:essential")
    parser.add_argument("--model", type=Path, help="a compiled model")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    operation, library = measurable(options.operation), KernelLibrary.load(options.library)
    selection: Any = Heuristic(options.model) if options.model else "analytic"
    dispatcher = Dispatcher([library], device=Device("cuda:0", arch=ARCH), selection=selection)
    problems = read(options.tables, operation)
    result: dict[str, Any] = {"tables": [table.name for table in options.tables], "problems": len(problems)}
    for name in ("all", *options.set):
        members = None
        if name != "all":
            (chosen,) = select("set", name, [ARCH], load_archs())
            members = {kernel.identity for kernel in chosen.kernels}
        print(name)
        result[name] = evaluate(problems, operation, dispatcher, members)
        print(json.dumps(result[name], indent=1))
    if learned := same_run(options.tables, operation):
        result["by the model, in the same run"] = learned
        print(json.dumps(learned, indent=1))
    if options.out:
        options.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
