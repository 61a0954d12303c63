"""Fits numbers of the dispatcher's estimates of convolution and attention on NVIDIA GPUs to tuning tables.

``python benchmarks/selection/fit_estimates.py TABLE.csv.gz … --library FOLDER --operation convolution`` compiles the
estimate with its numbers as variables, and prints what choices by them cost against the fastest kernel and number of
slices of each problem, before and after a seeded random descent that begins at the numbers that are there. ``--write``
writes the best ones to the source. ``--fit`` names them. ``--check TABLE …`` tries other tables by the same numbers.
Only choices that the dispatcher makes itself compete: powers of two, what lies between them, and what fills the units.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from formula import variable_header, write_numbers
from oracle import read

from kernelwright.codegen.formulas.made import find
from kernelwright.codegen.formulas.translate import constants
from kernelwright.tile_engine.registry import measurable

ROOT = Path(__file__).resolve().parents[2] / "dispatcher_cpp"
FORMULAS = {
    "attention": "operations.attention.formulas.times",
    "convolution": "operations.convolution.formulas.hopper",
}
UNITS = 132
NEAR = 1.6  # a choice this many times slower than the best one need not be predicted well
Array = np.ndarray[Any, np.dtype[Any]]

# Functions of the compiled file: numbers by name, and the predictions of rows. kernels are of a loaded library.
_SHIM = """
#include <string.h>
using namespace kernelwright;
extern "C" double* kw_number(const char* name) {{
{numbers}
}}
extern "C" void kw_rows(const kw_library* library, const uint32_t* kernels, const {type}* problems,
                        const uint32_t* choices, uint64_t count, double* us, uint32_t* fills) {{
  const Place place = {{library->arch, {units}}};
  for (uint64_t i = 0; i < count; ++i) {{
    const kw_kernel& kernel = *library->kernels[kernels[i]];
    {type} p = problems[i];
{pose}
  }}
}}
"""
_POSE = {
    "convolution": """
    if (p.base.op == KW_OP_CONV_BACKWARD_WEIGHT) {
      p.base.op = KW_OP_CONV_WEIGHT_SLICES;
      p.split_k = choices[i];
      p.leaves_slices = choices[i] > 1 && conv_traits(kernel).slices != 0 ? 1 : 0;
    }
    fills[i] = 0;
    us[i] = estimate_conv(kernel, p.base, place).total_us;""",
    "attention": """
    const kw_attention_traits& t = attention_traits(kernel);
    fills[i] = 0;
    if (p.base.op == KW_OP_ATTENTION) {
      p.base.op = KW_OP_ATTENTION_PART;
      p.num_splits = choices[i];
      p.leaves_splits = kw_attention_leaves(&t, choices[i]);
      fills[i] = splits_that_fill(t, p, place);
    } else {
      p.base.op = KW_OP_ATTENTION_DQ_DK_DV;
      p.dq_slices = kw_attention_dq_slices(&t, &p);
    }
    us[i] = estimate_attention(kernel, p.base, place).total_us;""",
}


class Estimates:
    """The estimate's source with its numbers as variables, compiled."""

    def __init__(self, operation: str, library: Path) -> None:
        """Compile the source. RuntimeError with the compiler's message."""
        text = (ROOT / "src/operations" / operation / "estimate.cpp").read_text()
        with tempfile.TemporaryDirectory() as folder:
            source = find(FORMULAS[operation])
            variable_header(source.header, Path(folder))
            self.source, self.numbers = ROOT.parent / source.path, constants(source.text)
            lines = f"  return {source.prefix}_number(name);"
            shim = _SHIM.format(
                numbers=lines, type=f"kw_{operation[:4] if operation == 'convolution' else operation}_problem",
                units=UNITS, pose=_POSE[operation],
            )  # fmt: skip
            code, made = Path(folder, "estimate.cpp"), Path(folder, "estimate.so")
            code.write_text(text + shim)
            include = [f"-I{folder}", f"-I{ROOT}/include"]
            command = ["g++", "-std=c++17", "-O2", "-fPIC", "-shared", *include, str(code), "-o", str(made)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(done.stderr)
            self._code = ctypes.CDLL(str(made))
        self._code.kw_number.restype = ctypes.POINTER(ctypes.c_double)
        file = next(library.glob("lib*.so"))
        loaded = ctypes.CDLL(str(file))
        loaded.kw_library_get.restype = ctypes.c_void_p
        self._library = ctypes.c_void_p(loaded.kw_library_get())

    def set(self, numbers: Mapping[str, float]) -> None:
        """Assign numbers."""
        for name, value in numbers.items():
            self._code.kw_number(name.encode())[0] = value

    def predict(self, rows: Rows) -> tuple[Array, Array]:
        """Microseconds of each row, and the number of splits that fills the units."""
        us, fills = np.zeros(len(rows.us)), np.zeros(len(rows.us), np.uint32)
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (rows.kernel, rows.problems, rows.choice)]
        results = [array.ctypes.data_as(ctypes.c_void_p) for array in (us, fills)]
        self._code.kw_rows(self._library, *pointers, ctypes.c_uint64(len(us)), *results)
        return us, fills


@dataclass(frozen=True)
class Rows:
    """Timed choices, grouped by problem.

    :ivar problems: the C structs, concatenated. ``starts``: index of each problem's first row; ``problem`` is the
        problem number of each row.
    """

    kernel: Array
    problems: Array
    choice: Array
    us: Array
    problem: Array
    starts: Array


def rows_of(tables: Sequence[Path], operation: Any, library: Path) -> Rows:
    """The rows of tables, without problems that have only one row."""
    from kernelwright.dispatch import KernelLibrary

    order = {kernel.identity: number for number, kernel in enumerate(KernelLibrary.load(library).kernels)}
    kernel, structs, choice, us, problem, starts = [], [], [], [], [], []
    for record, times in read(tables, operation):
        if len(times) < 2:
            continue
        starts.append(len(us))
        native = bytes(operation.problem(record).native())
        for (identity, choices), ms in times.items():
            match = re.search(r"(?:split_k|num_splits)=(\d+)", choices)
            kernel.append(order[identity])
            structs.append(native)
            choice.append(int(match[1]) if match else 1)
            us.append(ms * 1e3)
            problem.append(len(starts) - 1)
    return Rows(
        np.array(kernel, np.uint32), np.frombuffer(b"".join(structs), np.uint8), np.array(choice, np.uint32),
        np.array(us), np.array(problem), np.array(starts),
    )  # fmt: skip


def choosable(rows: Rows, fills: Array) -> Array:
    """Rows that the dispatcher itself may choose."""

    def own(count: int, filled: int) -> bool:
        odd = count // (count & -count)
        return odd == 1 or (odd == 3 and count >= 3) or count in (filled, 2 * filled)

    return np.array([own(int(c), int(f)) for c, f in zip(rows.choice, fills, strict=True)])


def losses(rows: Rows, predicted: Array, own: Array) -> Array:
    """The time of the choice over that of the fastest row, for each problem."""
    seen = np.where(own, predicted, np.inf)
    least = np.minimum.reduceat(seen, rows.starts)
    chosen = np.maximum.reduceat(np.where(seen <= least[rows.problem], rows.us, 0.0), rows.starts)
    return np.asarray(chosen / np.minimum.reduceat(rows.us, rows.starts))


def cost(rows: Rows, predicted: Array, own: Array, drift: float) -> float:
    """Mean loss and that of the worst tenth, errors of near predictions, distance from the starting point."""
    loss = np.sort(np.log(losses(rows, predicted, own)))
    near = rows.us < NEAR * np.minimum.reduceat(rows.us, rows.starts)[rows.problem]
    error = np.log(predicted[near] / rows.us[near])
    worst = loss[-max(1, len(loss) // 10) :].mean()
    return float(12 * loss.mean() + 2 * worst + error.std() + np.abs(error).mean() + 0.3 * drift)


def said(title: str, loss: Array) -> str:
    """Format fractions of the fastest choice's speed."""
    share = np.sort(1 / loss)
    return (
        f"{title}: {len(share)} problems, mean {share.mean():.4f}, median {np.median(share):.4f}, "
        f"P10 {share[max(0, -(-len(share) // 10) - 1)]:.4f}, min {share[0]:.4f}"
    )


def fit(
    estimates: Estimates, rows: Rows, own: Array, names: Sequence[str], starts: int, steps: int
) -> dict[str, float]:
    """The best of several random descents; deterministic."""
    first, best, least = {name: estimates.numbers[name] for name in names}, {}, math.inf

    def tried(numbers: Mapping[str, float]) -> float:
        drift = sum(max(0.0, abs(math.log(numbers[name] / first[name])) - 0.7) for name in names)
        estimates.set(numbers)
        return cost(rows, estimates.predict(rows)[0], own, drift)

    for seed in range(starts):
        rng = np.random.default_rng(seed)
        now = {name: value * math.exp(rng.normal() * 0.15 * (seed > 0)) for name, value in first.items()}
        had = tried(now)
        for step in range(steps):
            then = dict(now)
            for name in rng.choice(list(names), size=min(len(names), int(rng.integers(1, 4))), replace=False):
                then[name] *= math.exp(rng.normal() * (0.25 if step < steps // 3 else 0.06))
            if (got := tried(then)) < had:
                now, had = then, got
        if had < least:
            best, least = now, had
        print(f"start {seed}: {had:.4f}, best {least:.4f}", flush=True)
    return {name: float(f"{value:.4g}") for name, value in best.items()}


def main() -> None:
    """Fit, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--operation", choices=sorted(_POSE), required=True)
    parser.add_argument("--fit", nargs="+", default=[], help="names of numbers")
    parser.add_argument("--check", type=Path, nargs="+", default=[], help="tables that are only evaluated")
    parser.add_argument("--starts", type=int, default=4)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    operation = measurable(options.operation)
    estimates = Estimates(options.operation, options.library)
    rows = rows_of(options.tables, operation, options.library)
    parts = {"tuning": rows} | {one.name: rows_of([one], operation, options.library) for one in options.check}
    own = choosable(rows, estimates.predict(rows)[1])

    def show(title: str) -> None:
        for name, part in parts.items():
            predicted, fills = estimates.predict(part)
            print(said(f"{title}, {name}", losses(part, predicted, choosable(part, fills))))

    show("before")
    if options.fit:
        fitted = fit(estimates, rows, own, options.fit, options.starts, options.steps)
        estimates.set(fitted)
        show("after")
        print(fitted)
        if options.write:
            write_numbers(estimates.source, fitted)


if __name__ == "__main__":
    main()
