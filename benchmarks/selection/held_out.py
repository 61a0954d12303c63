"""What a collected table of GEMM problems says of libraries: their choices against the fastest kernel and torch.

``python benchmarks/selection/held_out.py TABLE.csv --set release --out result.json``, with PYTHONPATH=arch:codegen,
reads a table of ``benchmarks/gpu/collect.py`` and needs no GPU. Four choices are compared by their measured times:
that of the dispatcher from the measured library, from the shipped one, from the kernels of a set (the one of them
with the smallest time by the dispatcher's formula, as the generator computes it), and the fastest kernel of all.
References are the faster of torch's two calls, and that or the best of cuBLASLt's first eight choices where the
table has them. Ratios above 1 mean that we are faster.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ratios import geometric_mean
from results_file import text

from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.selecting.selection import load_archs, select

Rows = Sequence[Mapping[str, str]]
ARCH = load("sm_90a")
OURS = "gemm_"
CHOICES = ("measured library", "set", "shipped")


def by_problem(table: Path) -> list[Rows]:
    """The rows of each problem that have a time."""
    found: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["latency_ms"]:
                found[row["problem_idx"]].append(row)
    return list(found.values())


def fastest(rows: Iterable[Mapping[str, str]]) -> float | None:
    """Milliseconds; None without rows."""
    return min((float(row["latency_ms"]) for row in rows), default=None)


def named(rows: Rows, start: str) -> Rows:
    """Those whose kernel's name begins so."""
    return [row for row in rows if row["kernel"].startswith(start)]


def predicted(rows: Rows, kernels: Mapping[str, Kernel]) -> float | None:
    """Milliseconds of the kernel that the formula prefers; None where no kernel was timed."""
    model = operation("gemm").time_model
    assert model is not None
    first = rows[0]
    problem = {name: int(first[name]) for name in ("m", "n", "k", "batch")} | {
        name: first[name] for name in ("layout", "dtype")
    }
    posed = model.read(problem)
    times = {
        row["identity"]: model.microseconds(kernels[row["identity"]], posed, ARCH)
        for row in rows
        if row["identity"] in kernels
    }
    serving = [identity for identity, time in times.items() if time is not None]
    if not serving:
        return None
    chosen = min(serving, key=lambda identity: (times[identity], identity))
    return fastest(row for row in rows if row["identity"] == chosen)


def measured(rows: Rows, kernels: Mapping[str, Kernel]) -> dict[str, Any] | None:
    """Milliseconds of one problem; None where no kernel was right."""
    ours = named(rows, OURS)
    if not ours:
        return None
    torch = fastest(named(rows, "torch"))
    return {
        "shape": [int(ours[0][name]) for name in ("m", "n", "k")],
        "fastest": fastest(ours),
        "measured library": fastest(row for row in ours if row["selected"]),
        "set": predicted(ours, kernels),
        "shipped": fastest(named(rows, "shipped")),
        "torch": torch,
        "torch or cuBLASLt": fastest([*named(rows, "torch"), *named(rows, "cuBLASLt")]),
    }


def summary(results: Sequence[Mapping[str, Any]], choice: str) -> dict[str, Any]:
    """Shares of the fastest kernel's speed, and geometric means of speeds of the references."""
    known = [result for result in results if result[choice] is not None]
    shares = sorted(result["fastest"] / result[choice] for result in known)
    of_torch = [result["torch"] / result[choice] for result in known if result["torch"]]
    of_best = [result["torch or cuBLASLt"] / result[choice] for result in known if result["torch or cuBLASLt"]]
    return {
        "problems": len(known),
        "of the fastest kernel": {
            "mean": round(statistics.mean(shares), 3),
            "median": round(statistics.median(shares), 3),
            "p10": round(shares[len(shares) // 10], 3),
            "min": round(shares[0], 3),
        },
        "of torch": {"geometric mean": round(geometric_mean(of_torch), 3), "worst": round(min(of_torch), 3)},
        "of torch or cuBLASLt": {"geometric mean": round(geometric_mean(of_best), 3), "worst": round(min(of_best), 3)},
    }


def main() -> None:
    """Print the summary, write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--set", default="release", help="a kernel set, such as release")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    (selection,) = select("set", options.set, [ARCH.name], load_archs())
    kernels = {kernel.identity: kernel for kernel in selection.kernels}
    results = [found for rows in by_problem(options.table) if (found := measured(rows, kernels)) is not None]
    head: dict[str, Any] = {"table": options.table.name, "set": options.set, "kernels of the set": len(kernels)}
    environment = options.table.with_name("environment.json")
    head["environment"] = json.loads(environment.read_text()) if environment.exists() else None
    head["summary"] = {choice: summary(results, choice) for choice in CHOICES}
    print(json.dumps(head["summary"], indent=1))
    if options.out:
        options.out.write_text(text(head, results))


if __name__ == "__main__":
    main()
