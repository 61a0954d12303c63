"""Fits the numbers of the formula of Hopper's GEMM kernels to the times that collect.py and sweep.py took.

``python benchmarks/selection/fit.py TUNING.csv.gz SWEEP.json …`` prints, for the numbers in operations/gemm/formulas/
hopper.py (in the generator) and for the fitted ones, what the choice by them costs against the best kernel of each
shape, and how far predictions are off; with ``--write`` it puts the fitted ones there, and into the features of learned
selection. The search starts at guesses from data sheets and is the same in every run.
"""

from __future__ import annotations

import argparse
import csv
import functools
import gzip
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from formula import Formula, write_numbers

ROOT = Path(__file__).resolve().parents[2]
MODULE = "operations.gemm.formulas.hopper"
FEATURES = ROOT / "codegen/kernelwright/codegen/heuristics/data/gemm.json"
NAME = re.compile(
    r"(cooperative|pingpong)_(?:True_){4}(\d+)x(\d+)x(\d+)_\dx\dx1_(\d+)x(\d+)x\d+(?:_c(?:fp32|fp16|bf16))?"
    r"(?:_cluster(\d)x(\d)x1)?((?:_splitk)?)((?:_streamk\w*)?)(?:\|split_k=(\d+))?$"
)
# Fitted numbers: where the search begins, and how much of the error saved by a distant value is forgiven.
GUESSES = {
    "READ_ROWS_CLOCKS": 16.0, "INSTRUCTION_SLACK": 1.05, "FILL_BYTES_PER_CLOCK": 128.0,
    "RECEIVE_BYTES_PER_CLOCK": 128.0,
    "STEP_CLOCKS": 30.0, "CLUSTER_STEP_CLOCKS": 30.0, "LATENCY_CLOCKS": 1000.0, "STORE_BYTES_PER_CLOCK": 32.0,
    "HIDDEN_STORE": 0.2, "START_CLOCKS": 1500.0, "REREAD_SHARE": 1.0, "MEMORY_SHARE": 0.85, "IN_FLIGHT_BYTES": 16e3,
    "OVERLAP": 0.1, "LAUNCH_US": 1.0, "CUT_US": 2.0, "CUTTABLE_US": 0.3, "SLICE_US": 0.3,
    "SLICE_ELEMENTS_PER_US": 30000.0,
}  # fmt: skip
NEAR = 1.6  # a kernel this many times slower than the best one need not be predicted well
FAR = 4.0  # a kernel this many times slower need not be predicted at all

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Sweep:
    """Times of kernels on shapes, grouped by shape.

    :ivar starts: index of each shape's first time; ``shape`` is the shape number of each time.
    :ivar rows: inputs of the formula for each time.
    """

    shapes: list[dict[str, Any]]
    names: list[str]
    us: Array
    shape: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]
    torch_us: Array
    rows: Array


def read(paths: list[Path], arch: dict[str, Any]) -> Sweep:
    """Merge all sweeps into one."""
    shapes = [shape for path in paths for shape in (table_shapes(path) if ".csv" in path.name else sweep_shapes(path))]
    names, us, columns = [], [], []
    for number, shape in enumerate(shapes):
        most = FAR * min(shape["us"].values())
        for name, taken in shape["us"].items():
            if taken < most:
                names.append(name)
                us.append(taken)
                columns.append(number)
    column = np.array(columns)
    kinds = {name: kernel_facts(name) for name in set(names)}
    facts = {key: np.array([float(kinds[name][key]) for name in names]) for key in kinds[names[0]]}
    facts |= {axis: np.array([float(shape[axis]) for shape in shapes])[column] for axis in "mnk"}
    dtypes = [shape["dtype"] for shape in shapes]
    facts["size"] = np.array([1.0 if dtype in ("fp8", "int8") else 2.0 for dtype in dtypes])[column]
    facts["wide"] = np.array([4.0 if dtype == "int8" else 2.0 for dtype in dtypes])[column]
    facts["rate"] = np.array([float(arch["flops_per_clock_per_cu"][dtype]) for dtype in dtypes])[column]
    starts = np.flatnonzero(np.r_[True, column[1:] != column[:-1]])
    torch_us = np.array([shape["torch_us"] for shape in shapes])
    return Sweep(shapes, names, np.array(us), column, starts, torch_us, rows_of(facts, arch))


def sweep_shapes(path: Path) -> list[dict[str, Any]]:
    """The shapes in a file of sweep.py."""
    return [{"dtype": "bf16", **shape} for shape in json.loads(path.read_text())["shapes"]]


def table_shapes(path: Path) -> list[dict[str, Any]]:
    """The shapes of a tile engine table that some kernel served; if torch refused, our fastest kernel stands in."""
    shapes: dict[str, dict[str, Any]] = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for row in csv.DictReader(file):
            if not row["latency_ms"]:
                continue
            extents = {axis: int(row[axis]) for axis in "mnk"}
            shape = shapes.setdefault(row["problem_idx"], {"dtype": row["dtype"], **extents, "us": {}, "torch": []})
            us = float(row["latency_ms"]) * 1e3
            if row["status"] == "ok":
                slices = row["choices"].partition("split_k=")[2] or "1"
                shape["us"][row["kernel"] + (f"|split_k={slices}" if slices != "1" else "")] = us
            elif row["kernel"].startswith("torch"):
                shape["torch"].append(us)
    served = [shape for shape in shapes.values() if shape["us"]]
    return [{**shape, "torch_us": min(shape["torch"] or shape["us"].values())} for shape in served]


def kernel_facts(name: str) -> dict[str, float]:
    """Tile, cluster, schedule and slices, parsed from a kernel's name."""
    match = NAME.search(name)
    if match is None:
        raise ValueError(f"{name!r} is no name of a plain sm_90a kernel")
    tile_m, tile_n, tile_k, warp_m, warp_n = (int(match[number]) for number in range(2, 7))
    return {
        "tile_m": tile_m, "tile_n": tile_n, "tile_k": tile_k,
        "warp_tile_m": warp_m, "warp_tile_n": warp_n,
        "cluster_m": int(match[7] or 1), "cluster_n": int(match[8] or 1),
        "pingpong": match[1] == "pingpong", "stream": bool(match[10]), "slices": int(match[11] or 1),
        "cuttable": bool(match[9]),
    }  # fmt: skip


@functools.cache
def formula() -> Formula:
    """The compiled formula."""
    return Formula(MODULE, ends_early=True)


def rows_of(f: dict[str, Array], arch: dict[str, Any]) -> Array:
    """Inputs of the formula, one row per time; batch 1 and beta 0."""
    one = np.ones_like(f["m"])
    given = {
        **{f"Problem.{name}": f[name] for name in ("m", "n", "k", "size")},
        **{f"Kernel.{name}": f[name] for name in ("tile_m", "tile_n", "tile_k", "warp_tile_m", "warp_tile_n")},
        **{f"Kernel.{name}": f[name] for name in ("cluster_m", "cluster_n", "pingpong", "cuttable")},
        "Problem.batch": one, "Problem.split": f["slices"], "Problem.size_c": f["wide"], "Problem.results": one,
        "Kernel.any_epilogue": 0 * one, "Kernel.copied": 0 * one,
        "Kernel.stream_k": f["stream"], "Device.units": one * arch["compute_units"],
        "Device.clocks_per_us": one * arch["clock_ghz"] * 1e3,
        "Device.bytes_per_us": one * arch["memory_gbytes_per_s"] * 1e3,
        "Device.rate": f["rate"], "Device.rate_fp32": 0 * one, "Device.lds_bytes": one * arch["lds_bytes"],
    }  # fmt: skip
    return np.stack([given[name] for name in formula().columns], axis=1)


def constants() -> dict[str, float]:
    """The current numbers of the formula."""
    return formula().numbers


def write(fitted: dict[str, float]) -> None:
    """Write numbers to the formula and to the features of learned selection."""
    write_numbers(ROOT / formula().source.path, fitted)
    features = FEATURES.read_text()
    for name, value in fitted.items():
        copied = "k" + "".join(word.capitalize() for word in name.split("_"))
        features = re.sub(rf'("{copied}": ")[-+.\de]+', rf"\g<1>{value:g}", features)
    FEATURES.write_text(features)


def chosen(sweep: Sweep, predicted: Array) -> Array:
    """Times of the kernels with the smallest predictions, by shape."""
    least = np.minimum.reduceat(predicted, sweep.starts)
    return np.asarray(np.maximum.reduceat(np.where(predicted <= least[sweep.shape], sweep.us, 0.0), sweep.starts))


def quality(sweep: Sweep, predicted: Array) -> dict[str, Any]:
    """Loss of the choice against the best kernel (log), its ratio to torch, and the error of near predictions (log)."""
    got, best = chosen(sweep, predicted), np.minimum.reduceat(sweep.us, sweep.starts)
    near = sweep.us < NEAR * best[sweep.shape]
    error = np.log(predicted[near] / sweep.us[near])
    return {"loss": np.log(got / best), "ratio": sweep.torch_us / got, "best": sweep.torch_us / best, "error": error}


def cost(sweep: Sweep, c: dict[str, float]) -> float:
    """Objective of the search: mean loss, and that of the worst tenth; prediction errors; distance from the guesses."""
    q = quality(sweep, formula().predict(sweep.rows, c))
    far = sum(max(0.0, abs(math.log(c[name] / guess)) - 1.0) for name, guess in GUESSES.items())
    loss, error = np.sort(q["loss"]), q["error"]
    worst = loss[-(len(loss) // 10) :].mean()
    return float(12 * loss.mean() + 2 * worst + error.std() + 0.5 * np.abs(error).mean() + 0.3 * far)


def fit(sweep: Sweep, starts: int, steps: int, names: list[str]) -> dict[str, float]:
    """The best of several random descents of the named numbers, starting from the guesses; deterministic."""
    fixed = constants()
    best, least = dict(fixed), math.inf
    for seed in range(starts):
        rng = np.random.default_rng(seed)
        c = {**fixed, **{name: GUESSES[name] * math.exp(rng.normal() * 0.2) for name in names}}
        now = cost(sweep, c)
        for step in range(steps):
            tried = dict(c)
            for name in rng.choice(names, size=int(rng.integers(1, 4)), replace=False):
                tried[name] *= math.exp(rng.normal() * (0.25 if step < steps // 3 else 0.06))
            then = cost(sweep, tried)
            if then < now:
                c, now = tried, then
        if now < least:
            best, least = c, now
        print(f"start {seed}: {now:.4f}, best {least:.4f}", flush=True)
    return {name: float(f"{best[name]:.4g}") for name in names}


def show(title: str, sweep: Sweep, c: dict[str, float]) -> None:
    """Print losses and ratios by dtype."""
    q = quality(sweep, formula().predict(sweep.rows, c))
    print(f"{title}: predictions within {q['error'].std():.1%} (standard deviation)")
    for dtype in sorted({shape["dtype"] for shape in sweep.shapes}):
        of = np.array([shape["dtype"] == dtype for shape in sweep.shapes])
        mean = {key: math.exp(np.log(q[key][of]).mean()) for key in ("ratio", "best")}
        print(
            f"  {dtype}: {of.sum()} shapes, choice costs {math.expm1(q['loss'][of].mean()):.2%} (worst"
            f" {math.expm1(q['loss'][of].max()):.1%}); of torch {mean['ratio']:.3f}, best kernels {mean['best']:.3f},"
            f" worst {q['ratio'][of].min():.3f}"
        )


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweeps", type=Path, nargs="+")
    parser.add_argument("--starts", type=int, default=6)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--only", nargs="+", default=list(GUESSES), choices=list(GUESSES), help="numbers to fit")
    parser.add_argument("--write", action="store_true", help="put the fitted numbers into the formula")
    options = parser.parse_args()
    arch = json.loads((ROOT / "arch/kernelwright/files/archs/sm_90a.json").read_text())
    sweep = read(options.sweeps, arch)
    show("in the formula", sweep, constants())
    fitted = fit(sweep, options.starts, options.steps, options.only)
    print(json.dumps(fitted, indent=1))
    show("fitted", sweep, {**constants(), **fitted})
    if options.write:
        write(fitted)


if __name__ == "__main__":
    _main()
