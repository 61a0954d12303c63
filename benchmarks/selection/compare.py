"""How near choices come to the fastest kernel: a trained model's, and those by predicted times, on the same tables.

``python benchmarks/selection/compare.py TABLE.csv.gz --library wide.json --model MODEL.json --set gemm:release``
evaluates both on every measured kernel with every number of slices that was timed, and on those of a set alone.
Predicted times are fit.py's formula with the dispatcher's numbers. Needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from fit import ROOT, constants, predict, read

from kernelwright.arch import load
from kernelwright.codegen.heuristics.model import read_model
from kernelwright.codegen.heuristics.schema import schema_of
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.tile_engine.learning.evaluate import evaluate
from kernelwright.tile_engine.learning.examples import Examples, examples_of, read_specs
from kernelwright.tile_engine.results.csv_file import read_rows

ARCH = load("sm_90a")
Key = tuple[tuple[int, int, int], str, int]


def predicted(table: Path) -> dict[Key, float]:
    """Predicted microseconds by shape, kernel and number of slices."""
    facts: Mapping[str, Any] = json.loads((ROOT / "arch/kernelwright/files/archs/sm_90a.json").read_text())
    sweep = read([table], dict(facts))
    times: dict[Key, float] = {}
    for name, number, us in zip(sweep.names, sweep.shape, predict(sweep.facts, constants(), dict(facts)), strict=True):
        shape = sweep.shapes[int(number)]
        kernel, _, slices = name.partition("|split_k=")
        times[(shape["m"], shape["n"], shape["k"]), kernel, int(slices or 1)] = float(us)
    return times


def keys(examples: Examples, features: list[str]) -> list[Key]:
    """Shape, kernel and number of slices of each example."""
    columns = [features.index(f"log2_{axis}") for axis in "mnk"]
    shapes = np.rint(np.exp2(examples.features[:, columns])).astype(int).tolist()
    slices = examples.features[:, features.index("slices")].astype(int).tolist()
    return [
        ((m, n, k), kernel, count) for (m, n, k), kernel, count in zip(shapes, examples.kernels, slices, strict=True)
    ]


def main() -> None:
    """Print the evaluations, write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("--library", type=Path, required=True, help="the kernels' library, or a list of specs")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--set", default="gemm:release", help="a kernel set, such as gemm:release")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    model, schema = read_model(options.model), schema_of("gemm")
    specs = read_specs([options.library], ARCH)
    units = ARCH.compute_units
    assert units
    examples = examples_of(read_rows(options.table), specs, schema, model.dtypes, ARCH, units)
    (selection,) = select("set", options.set, [ARCH.name], load_archs())
    members = {kernel.name for kernel in selection.kernels}
    times = predicted(options.table)
    # A kernel too slow to be considered by fit.py comes last.
    by_times = np.array([-times.get(key, math.inf) for key in keys(examples, list(schema.features))])
    scores = {
        "model": np.array([model.predict(row) for row in examples.features.tolist()]),
        "predicted times": by_times,
    }
    evaluations = {}
    for part, chosen in (
        ("all", np.ones(len(by_times), bool)),
        (options.set, np.array([k in members for k in examples.kernels])),
    ):
        for name, score in scores.items():
            one = evaluate(examples.of(chosen), score[chosen])
            print(f"{part}, {name}: {one}")
            evaluations[f"{part}, {name}"] = one.as_json()
    if options.out:
        options.out.write_text(
            json.dumps({"table": options.table.name, "sha256": model.digest, **evaluations}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
