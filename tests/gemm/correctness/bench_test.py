"""The harness passes a right kernel and catches each thing that can be wrong with one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from gemm.correctness.bench import Bench
from gemm.correctness.cases import Case, extents, random_cases
from gemm.correctness.guarded import Block
from gemm.correctness.memory import Host
from gemm.correctness.reference import ACTIVATIONS, Inputs, allowed_error, error, exact, plain, rounded, scale
from kernelwright.dispatch import GemmProblem

SPEC = {"layout": "rcr", "dtype_a": "bf16", "dtype_b": "bf16", "dtype_c": "bf16", "dtype_acc": "fp32"}
SCRATCH = 64


def at(address: int, shape: tuple[int, ...], strides: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    steps = tuple(stride * dtype.itemsize for stride in strides)
    nbytes = 1 + sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True)) + dtype.itemsize
    memory = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
    return np.ndarray(shape, dtype, memory.data, 0, steps)


Wrong = Callable[[GemmProblem, "np.ndarray[Any, Any]", "np.ndarray[Any, Any]", "np.ndarray[Any, Any]", int], None]


class NumpyKernel(Bench):
    """A Bench whose kernel is NumPy, and then ``spoil`` ruins something: (problem, a, b, d, workspace)."""

    def __init__(self, spoil: Wrong | None = None, run: Callable[[Inputs], Any] = plain) -> None:
        self.kernel = SimpleNamespace(name="numpy", identity="0", arch="x86_64_v3", spec=SPEC)  # type: ignore[assignment]
        self.spec, self.layout = dict(SPEC), "rcr"
        self.names = {x: str(SPEC[f"dtype_{x}"]) for x in ("a", "b", "c", "acc")}
        self.types = {x: np.dtype(ml_dtypes.bfloat16) for x in "abc"}
        self.epilogue, self.b_format = (0, "add", "none"), 0
        self.memory, self.reference, self.spoil, self.run = Host(), plain, spoil, run
        self.dispatcher = self  # type: ignore[assignment]

    def plan(self, problem: GemmProblem) -> Any:
        def launch(a: int, b: int, c: int | None, out: int, workspace: int) -> None:
            p, kind = problem, self.types["a"]
            first = at(a, (p.m, p.k), (p.lda or 0, 1), kind)
            second = at(b, (p.k, p.n), (1, p.ldb or 0), kind)
            result = at(out, (p.m, p.n), (p.ldc or 0, 1), kind)
            old = at(c, (p.m, p.n), (p.ldc or 0, 1), kind).copy() if c is not None else None
            result[...] = self.run(Inputs(first, second, old, (), p.alpha, p.beta, "add", "none", kind))
            if self.spoil is not None:
                self.spoil(p, first, second, result, workspace)

        launch.kernel, launch.workspace_bytes = self.kernel, SCRATCH  # type: ignore[attr-defined]
        return launch


CASE = Case(33, 20, 40, (3, 1, 2, 0), whole=True)
NORMAL = replace(CASE, whole=False)


@pytest.mark.parametrize("case", [CASE, NORMAL, replace(NORMAL, m=1, n=1), replace(CASE, alpha=2, beta=1, c_is_d=True)])
def test_a_right_kernel_passes(case: Case) -> None:
    NumpyKernel().check(case)


def first_element(values: np.ndarray[Any, Any], offset: int) -> Any:
    return at(values.ctypes.data + offset, (1,), (1,), np.dtype(np.uint8))


def miss_the_corner(p: Any, a: Any, b: Any, d: Any, workspace: int) -> None:
    d[-1, -1] = np.nan


def off_by_a_bit(p: Any, a: Any, b: Any, d: Any, workspace: int) -> None:
    d[3, 4] += abs(d[3, 4]) / 64 + 1


def write_behind(p: Any, a: Any, b: Any, d: Any, workspace: int) -> None:
    first_element(d, ((p.m - 1) * p.ldc + p.n) * 2)[0] ^= 1


def write_before(p: Any, a: Any, b: Any, d: Any, workspace: int) -> None:
    first_element(d, -1)[0] ^= 1


def write_a_gap(p: Any, a: Any, b: Any, d: Any, workspace: int) -> None:
    first_element(d, p.n * 2)[0] ^= 1


def write_an_operand(p: Any, a: Any, b: Any, d: Any, workspace: int) -> None:
    b[0, 0] = 9


def outgrow_the_workspace(p: Any, a: Any, b: Any, d: Any, workspace: int) -> None:
    at(workspace, (SCRATCH + 1,), (1,), np.dtype(np.uint8))[SCRATCH] ^= 1


FAULTS: dict[Wrong, str] = {
    miss_the_corner: "1 of 660 elements are wrong, first .0, 32, 19.: nan",
    off_by_a_bit: "1 of 660 elements are wrong, first .0, 3, 4.",
    write_behind: "memory behind the operand was written",
    write_before: "memory before the operand was written",
    write_a_gap: "a gap was written, 40 bytes",
    write_an_operand: "an operand was written",
    outgrow_the_workspace: "memory behind the operand was written",
}


@pytest.mark.parametrize("spoil", FAULTS)
def test_faults_are_caught(spoil: Wrong) -> None:
    with pytest.raises(AssertionError, match=FAULTS[spoil]):
        NumpyKernel(spoil).check(CASE)


def test_results_that_depend_on_chance_are_caught() -> None:
    calls: list[int] = []

    def now_and_then(p: Any, a: Any, b: Any, d: Any, workspace: int) -> None:
        calls.append(1)
        if len(calls) == 3:
            d[0, 0] *= 1 + 2.0**-7

    with pytest.raises(AssertionError, match="repeats differ"):
        NumpyKernel(now_and_then).check(NORMAL)


def test_sums_in_too_few_bits_are_caught() -> None:
    def narrow(inputs: Inputs) -> Any:
        """Rounds to bf16 after each product, as a kernel that keeps partial sums in its results' type does."""
        total = np.zeros((inputs.a.shape[0], inputs.b.shape[1]), inputs.dtype)
        for i in range(inputs.a.shape[1]):
            total = (total + np.outer(inputs.a[:, i], inputs.b[i])).astype(inputs.dtype)
        return total

    with pytest.raises(AssertionError, match=r"the error is .* allowed"):
        NumpyKernel(run=narrow).check(NORMAL)


def inputs_of(activation: str, op: str = "add", dtype: Any = np.float32) -> Inputs:
    rng = np.random.default_rng(7)
    a, b, c, d0, d1 = (rng.standard_normal(shape).astype(dtype) for shape in ((2, 9, 5), (2, 5, 4), *[(2, 9, 4)] * 3))
    return Inputs(a, b, c, (d0, d1), 2.0, -1.0, op, activation, np.dtype(dtype))


@pytest.mark.parametrize("op", ["add", "multiply"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_references_agree_to_their_precision(activation: str, op: str) -> None:
    inputs = inputs_of(activation, op)
    assert 0 < error(plain(inputs), exact(inputs), scale(inputs)) < 3e-7
    half = inputs_of(activation, op, ml_dtypes.bfloat16)
    assert 1e-4 < allowed_error([half]) < 2 * 2.0**-7


def test_activations_have_the_values_of_their_definitions() -> None:
    x = np.array([-30.0, -1.0, 0.0, 1.0, 30.0])
    expected = {
        "relu": [0, 0, 0, 1, 30],
        "gelu": [0, -0.15865525, 0, 0.84134475, 30],  # x times the normal distribution function
        "fast_gelu": [0, -0.1588, 0, 0.8412, 30],
        "silu": [0, -0.26894142, 0, 0.73105858, 30],
        "sigmoid": [0, 0.26894142, 0.5, 0.73105858, 1],
        "tanh": [-1, -0.76159416, 0, 0.76159416, 1],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(ACTIVATIONS[name](x), values, atol=1e-4 if name == "fast_gelu" else 1e-7)
        assert ACTIVATIONS[name](x.astype(np.float32)).dtype == np.float32


def test_slopes_bound_what_errors_grow_by() -> None:
    x = np.linspace(-6, 6, 20001)
    for name, function in ACTIVATIONS.items():
        steepest = np.abs(np.diff(function(x)) / np.diff(x)).max()
        like = Inputs(x[:1, None], x[:1, None], None, (), 1.0, 0.0, "add", name, np.dtype(np.float64))
        assert scale(like)[0, 0] / 36 >= min(steepest, 1.13) * 0.999


def test_rounding_goes_through_the_accumulator() -> None:
    value = np.array([1 + 2.0**-9 + 2.0**-26])  # nearer to the larger bf16, but not in fp32
    assert rounded(value, np.dtype(ml_dtypes.bfloat16))[0] == 1.0


def test_cases_are_the_same_each_time_and_at_the_edges() -> None:
    cases = list(random_cases(300))
    assert cases == list(random_cases(300)) and cases[:20] != list(random_cases(20, seed=1))
    seen = {extent for case in cases for extent in (case.m, case.n, case.k)}
    assert seen <= set(extents(520)) and {0, 1, 63, 64, 65, 127, 257} <= seen
    assert all(case.n % 8 == 0 and case.k % 8 == 0 and case.gaps[0] % 8 == 0 for case in random_cases(50, align=8))
    assert str(cases[0]).startswith(f"{cases[0].m}x{cases[0].n}x{cases[0].k}")


def test_blocks_repeat_where_a_stride_is_zero() -> None:
    block = Block((3, 2, 4), (0, 0, 1), np.dtype(np.float32))
    block.values[...] = np.arange(4)
    assert block.nbytes == 16 and (block.values == np.arange(4)).all()
    block.assert_untouched_around()


@pytest.mark.parametrize("layout", ["rcr", "rrr"])
def test_lines_and_batches_of_aligned_cases_are_aligned(layout: str) -> None:
    """Backends that load whole vectors refuse others, also where a problem has k = 0 and its lines no element."""
    bench = NumpyKernel()
    bench.layout = layout
    empty = 0
    for seed in range(20):
        for case in random_cases(50, seed=seed, align=16):
            empty += 0 in (case.m, case.n, case.k) and case.batch > 1
            strides = {x: bench._strides(x, case) for x in "abc"}
            assert all(batch % 16 == 0 and max(lines) % 16 == 0 for batch, *lines in strides.values()), (case, strides)
    assert empty > 20
