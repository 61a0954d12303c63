"""Fits the numbers of the dispatcher's time model of Hopper kernels to the times that collect.py and sweep.py took.

``python benchmarks/selection/fit.py TUNING.csv.gz SWEEP.json …`` prints, for the numbers in analytic_cuda.cpp (in
dispatcher_cpp/src/operations/gemm) and for the fitted ones, what the choice by them costs against the best kernel of
each shape, and how far predictions are off; with ``--write`` it puts the fitted ones there. The search starts at
guesses from data sheets and is the same in every run. The formula is analytic_cuda.cpp's, in NumPy over all shapes and
kernels at once; --check compares the two through a library and the native dispatcher.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "dispatcher_cpp" / "src" / "operations" / "gemm" / "analytic_cuda.cpp"
COPY = ROOT / "codegen/kernelwright/codegen/operations/gemm/time_model/hopper.py"
FEATURES = ROOT / "codegen/kernelwright/codegen/heuristics/data/gemm.json"
NAME = re.compile(
    r"(cooperative|pingpong)_(?:True_){4}(\d+)x(\d+)x(\d+)_\dx\dx1_(\d+)x(\d+)x\d+(?:_c(?:fp32|fp16|bf16))?"
    r"(?:_cluster(\d)x(\d)x1)?((?:_splitk)?)((?:_streamk\w*)?)(?:\|split_k=(\d+))?$"
)
# What is fitted: where the search begins, and how much of the error is forgiven that a far away value would save.
GUESSES = {
    "kReadRowsClocks": 16.0, "kInstructionSlack": 1.05, "kFillBytesPerClock": 128.0, "kReceiveBytesPerClock": 128.0,
    "kStepClocks": 30.0, "kClusterStepClocks": 30.0, "kLatencyClocks": 1000.0, "kStoreBytesPerClock": 32.0,
    "kHiddenStore": 0.2, "kStartClocks": 1500.0, "kRereadShare": 1.0, "kMemoryShare": 0.85, "kInFlightBytes": 16e3,
    "kOverlap": 0.1, "kLaunchUs": 1.0, "kCutUs": 2.0, "kCuttableUs": 0.3, "kSliceUs": 0.3,
    "kSliceElementsPerUs": 30000.0,
}  # fmt: skip
NEAR = 1.6  # a kernel so many times slower than the best one need not be predicted well
FAR = 4.0  # one so many times slower need not be predicted at all

Array = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Sweep:
    """Times of kernels on shapes, one after the other, those of a shape side by side.

    :ivar starts: where each shape's times begin; ``shape`` is the number of each time's shape.
    :ivar facts: numbers of the problem and the kernel of each time.
    """

    shapes: list[dict[str, Any]]
    names: list[str]
    us: Array
    shape: np.ndarray[Any, Any]
    starts: np.ndarray[Any, Any]
    torch_us: Array
    facts: dict[str, Array]


def read(paths: list[Path], arch: dict[str, Any]) -> Sweep:
    """All sweeps as one."""
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
    return Sweep(shapes, names, np.array(us), column, starts, torch_us, facts | tiling(facts, arch))


def sweep_shapes(path: Path) -> list[dict[str, Any]]:
    """Those of a file of sweep.py."""
    return [{"dtype": "bf16", **shape} for shape in json.loads(path.read_text())["shapes"]]


def table_shapes(path: Path) -> list[dict[str, Any]]:
    """Those of a table of the tile engine that any kernel served; where torch refused, our fastest kernel stands in."""
    found: dict[str, dict[str, Any]] = {}
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        for row in csv.DictReader(file):
            if not row["latency_ms"]:
                continue
            extents = {axis: int(row[axis]) for axis in "mnk"}
            shape = found.setdefault(row["problem_idx"], {"dtype": row["dtype"], **extents, "us": {}, "torch": []})
            us = float(row["latency_ms"]) * 1e3
            if row["status"] == "ok":
                slices = row["choices"].partition("split_k=")[2] or "1"
                shape["us"][row["kernel"] + (f"|split_k={slices}" if slices != "1" else "")] = us
            elif row["kernel"].startswith("torch"):
                shape["torch"].append(us)
    served = [shape for shape in found.values() if shape["us"]]
    return [{**shape, "torch_us": min(shape["torch"] or shape["us"].values())} for shape in served]


def kernel_facts(name: str) -> dict[str, float]:
    """Tile, cluster, schedule and slices, out of a kernel's name."""
    match = NAME.search(name)
    if match is None:
        raise ValueError(f"{name!r} is no name of a plain sm_90a kernel")
    tile_m, tile_n, tile_k, warp_m, warp_n = (int(match[number]) for number in range(2, 7))
    swapped = not (warp_m == 64 and warp_n == tile_n) and warp_m == tile_m and warp_n == 64
    return {
        "tile_m": tile_m, "tile_n": tile_n, "tile_k": tile_k,
        "swapped": swapped, "rows": tile_n if swapped else tile_m, "columns": tile_m if swapped else tile_n,
        "cluster_m": int(match[7] or 1), "cluster_n": int(match[8] or 1),
        "pingpong": match[1] == "pingpong", "stream": bool(match[10]), "slices": int(match[11] or 1),
        "cuttable": bool(match[9]),
    }  # fmt: skip


def tiling(f: dict[str, Array], arch: dict[str, Any]) -> dict[str, Array]:
    """What of the formula depends on no fitted number."""
    units = float(arch["compute_units"])
    tiles_m = np.ceil(f["m"] / (f["tile_m"] * f["cluster_m"])) * f["cluster_m"]
    tiles_n = np.ceil(f["n"] / (f["tile_n"] * f["cluster_n"])) * f["cluster_n"]
    tiles = tiles_m * tiles_n * f["slices"]
    running = np.minimum(tiles, units)
    side = np.maximum(1.0, running / f["slices"])
    panels = shared_panels(f, np.minimum(side, tiles_m * tiles_n), tiles_m, tiles_n)
    again = tiles_m * tiles_n / side * f["k"] * f["size"] * panels
    steps = np.ceil(np.ceil(f["k"] / f["tile_k"]) / f["slices"])
    return {"tiles": tiles, "running": running, "again": again, "steps": steps}


def predict(f: dict[str, Array], c: dict[str, float], arch: dict[str, Any]) -> Array:
    """Microseconds, as estimate_cuda of analytic_cuda.cpp, whose names these are; batch 1 and beta 0."""
    units, per_us = float(arch["compute_units"]), arch["clock_ghz"] * 1e3
    bandwidth = arch["memory_gbytes_per_s"] * 1e3 * c["kMemoryShare"]
    cut, stream = (f["slices"] > 1) | (f["stream"] > 0), f["stream"] > 0
    filled = f["tiles"] / units
    waves = np.where(stream, np.maximum(1.0, filled) * c["kStreamSlack"], np.ceil(filled))

    multiply = 2 * 64 * f["columns"] * (32 / f["size"]) / f["rate"]
    read = c["kReadRowsClocks"] + c["kReadColumnClocks"] * f["columns"]
    instruction = np.maximum(multiply, read) * c["kInstructionSlack"]
    step = f["tile_k"] * f["size"] / 32 * f["rows"] / 64 * instruction
    per_stage = (f["tile_m"] + f["tile_n"]) * f["tile_k"] * f["size"]
    kept = c["kEpilogueElements"] * f["wide"]
    stages = np.maximum(1.0, np.floor((arch["lds_bytes"] - kept) / per_stage))
    fetched = (f["tile_m"] / f["cluster_n"] + f["tile_n"] / f["cluster_m"]) * f["tile_k"] * f["size"]
    fill = fetched / c["kFillBytesPerClock"] + per_stage / c["kReceiveBytesPerClock"]
    fill = np.maximum(fill, c["kLatencyClocks"] / np.maximum(1.0, stages - 1))
    hidden = np.where((f["pingpong"] > 0) & (waves > 1), c["kHiddenStore"], 1.0) * np.where(cut, 2.0, 1.0)
    store = f["tile_m"] * f["tile_n"] * f["wide"] / c["kStoreBytesPerClock"] * hidden
    slack = np.where(f["swapped"] > 0, c["kSwappedSlack"], 1.0) * np.where(f["pingpong"] > 0, 1.0, c["kSharedSlack"])
    longest = np.maximum(step, fill) + np.where(stages < 3, np.minimum(step, fill), 0.0)
    waits = c["kStepClocks"] + np.where(f["cluster_m"] * f["cluster_n"] > 1, c["kClusterStepClocks"], 0.0)
    inside = (waves * (f["steps"] * (longest + waits) * slack + store) + c["kStartClocks"]) / per_us

    once = (f["m"] + f["n"]) * f["k"] * f["size"]
    results = f["m"] * f["n"] * f["wide"]
    reached = np.minimum(1.0, f["running"] * stages * per_stage / (c["kInFlightBytes"] * units))
    memory = (once + c["kRereadShare"] * np.maximum(0.0, f["again"] - once) + results) / (bandwidth * reached)
    both = np.maximum(inside, memory) + c["kOverlap"] * np.minimum(inside, memory)
    added = c["kSliceUs"] + f["tile_m"] * f["tile_n"] / c["kSliceElementsPerUs"]
    slices = np.where(cut, c["kCutUs"], f["cuttable"] * c["kCuttableUs"]) + (f["slices"] - 1) * added
    return np.asarray(both + c["kLaunchUs"] + slices)


def shared_panels(f: dict[str, Array], running: Array, tiles_m: Array, tiles_n: Array) -> Array:
    """Elements per step of k that tiles side by side need, in the rectangle that needs least."""
    least = running * (f["tile_m"] + f["tile_n"])
    for exponent in range(16):
        last = np.minimum(tiles_m, running)
        reached = 2.0 ** (exponent - 1) >= last if exponent else np.zeros_like(last, bool)
        rows = np.minimum(2.0**exponent, tiles_m)
        found = rows * f["tile_m"] + np.maximum(1.0, running / rows) * f["tile_n"]
        least = np.where(~reached & (running / rows <= tiles_n) & (found < least), found, least)
    return np.asarray(least)


def constants() -> dict[str, float]:
    """The numbers that are in the dispatcher now."""
    found = re.findall(r"constexpr double (k\w+) = ([-+.\de]+);", SOURCE.read_text())
    return {name: float(value) for name, value in found}


def write(fitted: dict[str, float]) -> None:
    """Put numbers into the sources of the dispatcher and the generator, and into the features of learned selection."""
    text, copied, features = SOURCE.read_text(), COPY.read_text(), FEATURES.read_text()
    for name, value in fitted.items():
        text = re.sub(rf"(constexpr double {name} = )[-+.\de]+;", rf"\g<1>{value:g};", text)
        copied = re.sub(rf'("{name}": )[-+.\de]+', rf"\g<1>{value:g}", copied)
        features = re.sub(rf'("{name}": ")[-+.\de]+', rf"\g<1>{value:g}", features)
    SOURCE.write_text(text)
    COPY.write_text(copied)
    FEATURES.write_text(features)


def chosen(sweep: Sweep, predicted: Array) -> Array:
    """Times of the kernels with the smallest predictions, by shape."""
    least = np.minimum.reduceat(predicted, sweep.starts)
    return np.asarray(np.maximum.reduceat(np.where(predicted <= least[sweep.shape], sweep.us, 0.0), sweep.starts))


def quality(sweep: Sweep, predicted: Array) -> dict[str, Any]:
    """The choice's loss against the best kernel (log), its ratio to torch, and the error of near predictions (log)."""
    got, best = chosen(sweep, predicted), np.minimum.reduceat(sweep.us, sweep.starts)
    near = sweep.us < NEAR * best[sweep.shape]
    error = np.log(predicted[near] / sweep.us[near])
    return {"loss": np.log(got / best), "ratio": sweep.torch_us / got, "best": sweep.torch_us / best, "error": error}


def cost(sweep: Sweep, c: dict[str, float], arch: dict[str, Any]) -> float:
    """What the search makes small: mean loss, and that of the worst tenth; prediction errors; distance of guesses."""
    q = quality(sweep, predict(sweep.facts, c, arch))
    far = sum(max(0.0, abs(math.log(c[name] / guess)) - 1.0) for name, guess in GUESSES.items())
    loss, error = np.sort(q["loss"]), q["error"]
    worst = loss[-(len(loss) // 10) :].mean()
    return float(12 * loss.mean() + 2 * worst + error.std() + 0.5 * np.abs(error).mean() + 0.3 * far)


def fit(sweep: Sweep, arch: dict[str, Any], starts: int, steps: int, names: list[str]) -> dict[str, float]:
    """The best of some random descents of the named numbers, each from the guesses; the same for the same data."""
    fixed = constants()
    best, least = dict(fixed), math.inf
    for seed in range(starts):
        rng = np.random.default_rng(seed)
        c = {**fixed, **{name: GUESSES[name] * math.exp(rng.normal() * 0.2) for name in names}}
        now = cost(sweep, c, arch)
        for step in range(steps):
            tried = dict(c)
            for name in rng.choice(names, size=int(rng.integers(1, 4)), replace=False):
                tried[name] *= math.exp(rng.normal() * (0.25 if step < steps // 3 else 0.06))
            then = cost(sweep, tried, arch)
            if then < now:
                c, now = tried, then
        if now < least:
            best, least = c, now
        print(f"start {seed}: {now:.4f}, best {least:.4f}", flush=True)
    return {name: float(f"{best[name]:.4g}") for name in names}


def show(title: str, sweep: Sweep, c: dict[str, float], arch: dict[str, Any]) -> None:
    """Losses and ratios by dtype."""
    q = quality(sweep, predict(sweep.facts, c, arch))
    print(f"{title}: predictions within {q['error'].std():.1%} (standard deviation)")
    for dtype in sorted({shape["dtype"] for shape in sweep.shapes}):
        of = np.array([shape["dtype"] == dtype for shape in sweep.shapes])
        mean = {key: math.exp(np.log(q[key][of]).mean()) for key in ("ratio", "best")}
        print(
            f"  {dtype}: {of.sum()} shapes, choice costs {math.expm1(q['loss'][of].mean()):.2%} (worst"
            f" {math.expm1(q['loss'][of].max()):.1%}); of torch {mean['ratio']:.3f}, best kernels {mean['best']:.3f},"
            f" worst {q['ratio'][of].min():.3f}"
        )


def check(library: Path, sweep: Sweep, arch: dict[str, Any]) -> float:
    """The largest relative difference between this formula and the dispatcher's on a library's kernels."""
    from kernelwright.dispatch import Device, Dispatcher, GemmProblem, KernelLibrary

    predicted, worst = predict(sweep.facts, constants(), arch), 0.0
    dispatcher = Dispatcher([KernelLibrary.load(library)], device=Device("cuda:0", arch="sm_90a"))
    rows = {
        (column, name): row for row, (column, name) in enumerate(zip(sweep.shape.tolist(), sweep.names, strict=True))
    }
    for column, shape in enumerate(sweep.shapes):
        dtype = shape["dtype"]
        result = {"fp8": "bf16", "int8": "int32"}.get(dtype, dtype)
        problem = GemmProblem(shape["m"], shape["n"], shape["k"], dtype=dtype, dtype_c=result)
        for kernel in dispatcher.explain(problem):
            row = rows.get((column, kernel.name))
            if row is not None and kernel.estimate is not None:
                theirs = kernel.estimate.total_us
                worst = max(worst, abs(float(predicted[row]) / theirs - 1))
    return worst


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sweeps", type=Path, nargs="+")
    parser.add_argument("--starts", type=int, default=6)
    parser.add_argument("--steps", type=int, default=2500)
    parser.add_argument("--only", nargs="+", default=list(GUESSES), choices=list(GUESSES), help="numbers to fit")
    parser.add_argument("--write", action="store_true", help="put the fitted numbers into analytic_cuda.cpp")
    parser.add_argument("--check", type=Path, metavar="LIBRARY", help="only compare this formula with the dispatcher's")
    options = parser.parse_args()
    arch = json.loads((ROOT / "arch/kernelwright/arch/data/sm_90a.json").read_text())
    sweep = read(options.sweeps, arch)
    show("in the dispatcher", sweep, constants(), arch)
    if options.check:
        print(f"largest difference to the dispatcher: {check(options.check, sweep, arch):.2g}")
        return
    fitted = fit(sweep, arch, options.starts, options.steps, options.only)
    print(json.dumps(fitted, indent=1))
    show("fitted", sweep, {**constants(), **fitted}, arch)
    if options.write:
        write(fitted)


if __name__ == "__main__":
    _main()
