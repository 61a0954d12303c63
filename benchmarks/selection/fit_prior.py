"""Fits the numbers of a schema's predicted time to tuning tables.

``python benchmarks/selection/fit_prior.py TABLE.csv.gz … --library FOLDER --operation attention --dtype bf16`` reads
``codegen/kernelwright/codegen/heuristics/data/OPERATION.json``, whose terms that are plain numbers are what is fitted:
weighted least squares of the logarithms of predicted over measured times, by damped Gauss-Newton steps from the
numbers that are there. What the prediction misses of a whole problem counts half, what it misses of a problem's kernels
against each other fully. Rows weigh less the further behind the problem's fastest one they are, and large errors by
their size instead of its square. ``--write`` puts the numbers into the file; models must be trained again then.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kernelwright.arch import load
from kernelwright.codegen.heuristics.schema import Schema, schema_of
from kernelwright.tile_engine.learning.examples import examples_of, read_specs
from kernelwright.tile_engine.results.csv_file import read_rows

DATA = Path(__file__).resolve().parents[2] / "codegen/kernelwright/codegen/heuristics/data"
ARCH = "sm_90a"
BEHIND, LEAST = 0.25, 0.03  # rows this much slower have weight 1/e; the minimum weight
LARGE = 0.08  # logarithmic errors beyond this are large
STEPS, CHANGE = 60, 1e-4
_NAMES = {
    "ceil": np.ceil, "floor": np.floor, "min": np.minimum, "max": np.maximum, "log": np.log, "log2": np.log2,
}  # fmt: skip
Array = np.ndarray[Any, np.dtype[Any]]


class Prior:
    """The prior of a schema over complete columns, with its numbers as variables."""

    def __init__(self, schema: Schema, inputs: Mapping[str, Array]) -> None:
        """``inputs``: one column each."""
        self._inputs = inputs
        self.numbers = {name: float(text) for name, text in schema.terms.items() if re.fullmatch(r"[\d.]+", text)}
        rest = {name: text for name, text in schema.terms.items() if name not in self.numbers}
        rest["prior"] = schema.features[schema.prior]
        self._code = {name: compile(text, name, "eval") for name, text in rest.items()}

    def log_rates(self, numbers: Mapping[str, float]) -> Array:
        """Logarithm of the predicted rate of every row."""
        known: dict[str, Any] = {**_NAMES, **self._inputs, **numbers}
        for name, code in self._code.items():
            known[name] = eval(code, {"__builtins__": {}}, known)
        return np.asarray(known["prior"], float)


class Residuals:
    """Weighted errors of predictions."""

    def __init__(self, log_rates: Array, problem: Array) -> None:
        """``log_rates`` are measured; ``problem`` is the problem number of each row."""
        fastest = np.full(problem.max() + 1, -np.inf)
        np.maximum.at(fastest, problem, log_rates)
        self._measured, self._problem = log_rates, problem
        self._weight = np.exp((1 - np.exp(fastest[problem] - log_rates)) / BEHIND) + LEAST
        self._whole = np.bincount(problem, self._weight)

    def of(self, predicted: Array) -> Array:
        """Two residuals per row: against the others of its problem, and half of the problem's common one."""
        error = predicted - self._measured
        common = np.bincount(self._problem, self._weight * error) / self._whole
        both = np.concatenate([error - common[self._problem], 0.5 * error])
        damped = np.sign(both) * np.sqrt(2 * (np.sqrt(1 + (both / LARGE) ** 2) - 1))  # its square grows linearly
        return np.asarray(np.sqrt(np.tile(self._weight, 2)) * damped)


def fit(prior: Prior, residuals: Residuals) -> dict[str, float]:
    """The numbers at which no damped step improves any more."""
    names, start = list(prior.numbers), np.array(list(prior.numbers.values()))

    def missed(z: Array) -> Array:
        numbers = dict(zip(names, start * np.exp(z), strict=True))
        with np.errstate(all="ignore"):
            return np.nan_to_num(residuals.of(prior.log_rates(numbers)), nan=1e3, posinf=1e3, neginf=-1e3)

    now, damping = np.zeros(len(names)), 1.0
    had = missed(now)
    for _ in range(STEPS):
        slopes = np.stack([(missed(now + CHANGE * unit) - had) / CHANGE for unit in np.eye(len(names))], axis=1)
        normal, towards = slopes.T @ slopes, slopes.T @ had
        while damping < 1e6:
            step = np.linalg.solve(normal + damping * np.diag(np.diag(normal) + 1e-6), -towards).clip(-0.5, 0.5)
            then = missed(now + step)
            if then @ then < had @ had:
                now, had, damping = now + step, then, damping / 4
                break
            damping *= 4
        else:
            break
        print(f"{had @ had:.2f}", flush=True)
    return {name: float(f"{value:.4g}") for name, value in zip(names, start * np.exp(now), strict=True)}


def main() -> None:
    """Fit, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--operation", required=True)
    parser.add_argument("--dtype", required=True)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    schema, arch = schema_of(options.operation), load(ARCH)
    rows = [row for table in options.tables for row in read_rows(table)]
    whole = {name: name for name in schema.inputs}  # a schema whose features are the inputs themselves
    plain = Schema(schema.op, schema.inputs, whole, (), schema.digest)
    specs = read_specs([options.library], arch)
    examples = examples_of(rows, specs, plain, (options.dtype,), arch, arch.compute_units or 1)
    prior = Prior(schema, dict(zip(whole, examples.features.T, strict=True)))
    numbers = fit(prior, Residuals(np.log(examples.tflops), examples.problem))
    print(numbers)
    if options.write:
        path = DATA / f"{options.operation}.json"
        text = path.read_text()
        for name, value in numbers.items():
            text = re.sub(rf'("{name}": ")[\d.]+"', rf'\g<1>{np.format_float_positional(value)}"', text)
        path.write_text(text)


if __name__ == "__main__":
    main()
