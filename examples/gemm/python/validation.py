"""Checks every kernel of a library: validation.py [--library DIR] [--cases 3].

Each kernel gets small whole numbers, whose products it must sum exactly, and normal numbers, whose error must stay
below the bound of a sum of k products in fp32 in any order and one rounding of the result (Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., 3.5). Exit status 1 if a kernel is wrong.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from command_line import example_parser, open_library

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelEntry, NoKernelError, dtypes

SHAPES = [(33, 17, 65), (128, 96, 64), (1, 257, 100), (64, 1, 509), (160, 160, 48)]
ROUNDOFF = {"fp32": 2.0**-24, "fp16": 2.0**-11, "bf16": 2.0**-8, "int32": 0.0}


def main(arguments: list[str] | None = None) -> int:
    """Check all kernels on a few shapes each; the number of wrong ones decides about the status."""
    parser = example_parser(__doc__)
    parser.add_argument("--cases", type=int, default=len(SHAPES), help="shapes for each kernel")
    options = parser.parse_args(arguments)
    library = open_library(options)

    right = wrong = 0
    for kernel in library.kernels:
        dispatcher = Dispatcher(library, selection=kernel.identity)  # this kernel and no other
        verdicts = [check(dispatcher, kernel, shape) for shape in SHAPES[: options.cases]]
        wrong += any(verdict.startswith("WRONG") for verdict in verdicts)
        right += set(verdicts) == {"right"}
        print(f"{', '.join(sorted(set(verdicts))):<24} {kernel.name}")
    others = len(library.kernels) - right - wrong
    print(f"{right} kernels are right, {wrong} wrong, {others} of another variant were not run")
    return 1 if wrong or not right else 0


def check(dispatcher: Dispatcher, kernel: KernelEntry, shape: tuple[int, int, int]) -> str:
    """``right``, what is wrong, or that the kernel does not serve plain problems (a grouped one, for instance)."""
    spec, (m, n, k) = kernel.spec, shape
    types = {f"dtype_{x}": str(spec[f"dtype_{x}"]) for x in ("a", "b", "c", "acc")}
    problem = GemmProblem(m, n, k, layout=str(spec["layout"]), **types)
    try:
        plan = dispatcher.plan(problem)
    except NoKernelError:
        return "of another variant"
    for whole in (True, False):
        rng = np.random.default_rng(m)
        a, b = matrix(rng, m, k, problem, 0, whole), matrix(rng, k, n, problem, 1, whole)
        out = np.full((m, n), -1 if problem.dtype_c == "int32" else np.nan, dtypes.numpy_dtype(problem.dtype_c))
        plan(a, b, out=out)
        exact = a.astype(np.float64) @ b.astype(np.float64)
        size = np.abs(a.astype(np.float64)) @ np.abs(b.astype(np.float64))
        exactly = whole or problem.dtype_c == "int32"
        bound = ROUNDOFF[problem.dtype_c] * np.abs(exact) + (0 if exactly else (k + 2) * 2.0**-24 * size)
        if not (np.abs(out.astype(np.float64) - exact) <= bound).all():
            return f"WRONG on {m}x{n}x{k}"
    return "right"


def matrix(rng: np.random.Generator, rows: int, columns: int, problem: GemmProblem, place: int, whole: bool) -> Any:
    """Random, in the problem's dtype and layout."""
    shape = (rows, columns) if problem.layout[place] == "r" else (columns, rows)
    values = rng.integers(-3, 4, shape) if whole else rng.standard_normal(shape)
    operand = values.astype(dtypes.numpy_dtype((problem.dtype_a, problem.dtype_b)[place]))
    return operand if problem.layout[place] == "r" else operand.T


if __name__ == "__main__":
    sys.exit(main())
