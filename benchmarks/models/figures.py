"""The tables of whole models in docs/benchmarks.md, from a result file of benchmarks/models/run.py."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ratios import geometric_mean

Row = Mapping[str, Any]
Ratios = dict[tuple[str, str], dict[str, float]]
"""Ratios of each mode, by model and work."""


def ratios(rows: Iterable[Row]) -> Ratios:
    """Torch's time ÷ ours: for eager calls within rounds; for a graph against the faster of torch's graph and eager.

    Torch's choices under capture are sometimes slower than those of its eager calls.
    """
    timed = {(row["model"], row["work"], row["mode"]): row for row in rows if "ratio" in row}
    speedups: Ratios = {}
    for (model, work, mode), row in timed.items():
        eager = timed.get((model, work, "eager"))
        if mode == "eager" or eager is None:
            ratio = row["ratio"]["median"]
        else:
            theirs = min(row["ms"]["torch"]["median"], eager["ms"]["torch"]["median"])
            ratio = theirs / row["ms"]["kernelwright"]["median"]
        speedups.setdefault((model, work), {})[mode] = ratio
    return speedups


def table(speedups: Ratios, models: Sequence[str], works: Sequence[str]) -> str:
    """A table with a row per model and a column per work: eager, then captured."""

    def cell(model: str, work: str) -> str:
        modes = speedups.get((model, work), {})
        return " / ".join(f"{modes[mode]:.2f}" for mode in ("eager", "graph") if mode in modes) or "–"

    lines = [f"| model | {' | '.join(works)} |", "|---" * (len(works) + 1) + "|"]
    lines += [f"| {model} | {' | '.join(cell(model, work) for work in works)} |" for model in models]
    return "\n".join(lines)


def tables(rows: Sequence[Row]) -> str:
    """Models with the same works share a table; means and minima are below it."""
    speedups = ratios(rows)
    works: dict[str, list[str]] = {}
    for model, work in speedups:
        works.setdefault(model, []).append(work)
    groups: dict[tuple[str, ...], list[str]] = {}
    for model, own in works.items():
        groups.setdefault(tuple(own), []).append(model)
    parts = [table(speedups, models, own) for own, models in groups.items()]
    for mode in ("eager", "graph"):
        values = [modes[mode] for modes in speedups.values() if mode in modes]
        if values:
            mean, count = geometric_mean(values), len(values)
            parts.append(f"Geometric mean of {count} {mode} calls {mean:.3f}, worst {min(values):.2f}.")
    return "\n\n".join(parts)


if __name__ == "__main__":
    print(tables(json.loads(Path(sys.argv[1]).read_text())["results"]))
