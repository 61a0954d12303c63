"""What a library that ships reaches on held-out problems: its choices against torch and cuBLASLt.

``python benchmarks/selection/held_out.py TABLE.csv.gz … --out result.json`` reads tables that
``benchmarks/gpu/collect.py --choices`` wrote and needs no GPU. Choices are the dispatcher's by predicted times, by a
compiled model, and from the essential library; references are the faster of torch's calls, and that or the best of
cuBLASLt's first eight choices. Ratios above 1 mean that we are faster.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ratios import geometric_mean
from results_file import text

from kernelwright.tile_engine.results.csv_file import read_rows

Result = Mapping[str, Any]
# Prefixes of kernel names in rows.
CHOICES = {"predicted times": "gemm_", "model": "learned: ", "essential library": "shipped: "}
ROWS = ((1, 8), (16, 64), (100, 256), (333, 1100), (2048, 16384))  # ranges of numbers of rows


def fastest(rows: Iterable[Mapping[str, str]], start: str) -> float | None:
    """Microseconds of the fastest row whose kernel's name has this prefix; None if there is none."""
    return min((float(row["latency_ms"]) * 1e3 for row in rows if row["kernel"].startswith(start)), default=None)


def measured(table: Path) -> list[Result]:
    """Microseconds for every problem that our kernels serve."""
    problems: dict[str, list[Mapping[str, str]]] = defaultdict(list)
    for row in read_rows(table):
        if row["latency_ms"]:
            problems[row["problem_idx"]].append(row)
    served: list[Result] = []
    for rows in problems.values():
        times = {name: fastest(rows, start) for name, start in CHOICES.items()}
        torch, lt = fastest(rows, "torch"), fastest(rows, "cuBLASLt")
        best = min((time for time in (torch, lt) if time is not None), default=None)
        shape = [int(rows[0][axis]) for axis in "mnk"]
        served.append({"dtype": rows[0]["dtype"], "shape": shape, **times, "torch": torch, "torch or cuBLASLt": best})
    return served


def ratios(results: Sequence[Result], choice: str, reference: str) -> dict[str, Any] | None:
    """Geometric mean and worst of a reference's time over a choice's; None if no problem has both."""
    both = [one for one in results if one[choice] and one[reference]]
    if not both:
        return None
    speedups = [one[reference] / one[choice] for one in both]
    by_rows = {
        f"{least} to {most}": round(geometric_mean(group), 3)
        for least, most in ROWS
        if (group := [ratio for ratio, one in zip(speedups, both, strict=True) if least <= one["shape"][0] <= most])
    }
    mean = round(geometric_mean(speedups), 3)
    return {"problems": len(speedups), "geometric mean": mean, "worst": round(min(speedups), 3), "by rows": by_rows}


def summary(results: Sequence[Result]) -> dict[str, Any]:
    """The ratios of each choice to both references."""
    return {
        choice: {
            f"of {reference}": figures
            for reference in ("torch", "torch or cuBLASLt")
            if (figures := ratios(results, choice, reference))
        }
        for choice in CHOICES
    }


def main() -> None:
    """Print the summaries, write the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--environment", type=Path, help="environment.json of the run")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    parts = {table.name: measured(table) for table in options.tables}
    environment = json.loads(options.environment.read_text()) if options.environment else None
    head = {"environment": environment, "summary": {name: summary(part) for name, part in parts.items()}}
    print(json.dumps(head["summary"], indent=1))
    if options.out:
        options.out.write_text(text(head, [one for part in parts.values() for one in part]))


if __name__ == "__main__":
    main()
