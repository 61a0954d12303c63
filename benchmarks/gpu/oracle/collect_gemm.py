"""Products for collect.py: beside torch's calls, other libraries' choices and cuBLASLt's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from collecting import (
    LONG_US,
    REFERENCE,
    ROUNDS,
    Candidate,
    Kernels,
    Mark,
    event,
    leave_slow,
    planned,
    time_calls,
)
from cublaslt import CublasLt
from references import plain_calls
from sweep import plain
from timing import TFLOPS, Operands, operand_sets, poison

from kernelwright.dispatch import GemmProblem, OperationPlan
from kernelwright.tile_engine.operation import Record
from kernelwright.tile_engine.registry import measurable

CHOICE_ROUNDS = 7  # if only choices are compared
FAR_PREDICTED = 2.0  # long launches predicted to be this many times slower are not timed
SLICES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32)
WAVES = (0.4, 2.1)  # left by slices worth timing: fewer underfill the GPU, more are no better than larger tiles
HEURISTICS = 8  # number of cuBLASLt's choices


class Library(Kernels):
    """A library of plain kernels."""

    def candidates(self, problem: GemmProblem, sets: Sequence[Operands], long: bool) -> Iterator[Candidate]:
        """Every plain kernel; split-K kernels with every number of slices that may pay off.

        The dispatcher's choice is marked. For ``long`` launches, those predicted to be far slower are left out.
        """
        chosen = self.chosen(problem, sets)
        predicted = self._predicted(problem)
        least = min(predicted.values(), default=0.0)
        for kernel in self.loaded.kernels:
            if not plain(kernel, problem.dtype_a) or kernel.identity not in predicted:
                continue
            if long and predicted[kernel.identity] > FAR_PREDICTED * least:
                continue
            own = self.plan(kernel, problem)
            if own is None:
                continue
            yield self._marked(own, sets, chosen)
            for slices in _slices(kernel.spec, problem) if kernel.spec.get("split_k") else ():
                plan = self.plan(kernel, replace(problem, split_k=slices))
                if plan is not None and plan.choices != own.choices:
                    yield self._marked(plan, sets, chosen)

    def chosen(self, problem: GemmProblem, sets: Sequence[Operands]) -> Candidate | None:
        """The dispatcher's choice; None if no kernel serves the problem."""
        plan = planned(self.chooser, problem)
        return None if plan is None else _candidate(plan, sets)

    def _marked(self, plan: OperationPlan[Any], sets: Sequence[Operands], chosen: Candidate | None) -> Candidate:
        made = _candidate(plan, sets)
        made.selected = chosen is not None and made.key == chosen.key
        return made

    def _predicted(self, problem: GemmProblem) -> dict[str, float]:
        """Microseconds by identity, with the fastest number of slices."""
        by_identity: dict[str, float] = {}
        for one in self.chooser.explain(problem):
            if one.estimate is not None:
                by_identity[one.identity] = min(by_identity.get(one.identity, math.inf), one.estimate.total_us)
        return by_identity


def _slices(spec: Mapping[str, Any], problem: GemmProblem) -> Iterator[int]:
    """1, and the numbers in SLICES that keep the number of waves within WAVES."""
    yield 1
    tiles = -(-problem.m // spec["tile"]["m"]) * -(-problem.n // spec["tile"]["n"])
    units = torch.cuda.get_device_properties(torch.cuda.current_device()).multi_processor_count
    least, most = (waves * units for waves in WAVES)
    yield from (one for one in SLICES if least <= tiles * one <= most)


def _candidate(plan: OperationPlan[Any], sets: Sequence[Operands]) -> Candidate:
    workspace = torch.empty(max(plan.workspace_bytes, 16), dtype=torch.uint8, device="cuda")

    def call(number: int) -> None:
        a, b, out = sets[number % len(sets)]
        stream = torch.cuda.current_stream().cuda_stream
        plan(a.data_ptr(), b.data_ptr(), out=out.data_ptr(), stream=stream, workspace=workspace.data_ptr())

    return Candidate(plan.kernel.name, call, plan.kernel.identity, plan.choices)


class GemmOracle:
    """Products with every kernel, or with the choices alone; tells ``mark`` what it is about to launch."""

    def __init__(self, library: Library, others: Mapping[str, Library], lt: CublasLt | None, mark: Mark) -> None:
        """``others``: libraries by name; the dispatcher's choice from each is timed as a reference.

        With ``lt`` only the library's choice is timed, beside torch and cuBLASLt; otherwise every kernel, beside torch.
        """
        self._library, self._others, self._lt, self._mark = library, others, lt, mark

    def run(self, record: Record, skipped: set[tuple[str, str]]) -> list[Candidate]:
        """Every candidate and reference that computes the product; the fastest kernels are timed in several rounds."""
        problem: GemmProblem = measurable("gemm").problem(record)
        m, n, k, dtype = problem.m, problem.n, problem.k, problem.dtype_a
        sets: list[Operands] = operand_sets(m, n, k, dtype)
        whole = _whole_numbers(sets[0], dtype)
        # The first set holds integers while calls are compared, and random numbers while they are timed.
        random_a, random_b = sets[0][0].clone(), sets[0][1].clone()
        sets[0][0].copy_(whole[0])
        sets[0][1].copy_(whole[1])
        expected = _exact_product(*whole, sets[0][2].dtype)
        size = 1 if dtype == "fp8" else 2
        us = max(2e-6 * m * n * k / TFLOPS[dtype], size * (m * k + n * k + m * n) / 4e6, 2.5)
        candidates = []
        for one in [*self._candidates(problem, sets, us > LONG_US), *self._references(problem, sets)]:
            if one.key in skipped:
                continue
            self._mark(*one.key)
            self._compare(one, sets[0][2], expected)
            candidates.append(one)
        sets[0][0].copy_(random_a)
        sets[0][1].copy_(random_b)
        if us > LONG_US:
            leave_slow(candidates, 0.0)
        rounds = ROUNDS if self._lt is None else CHOICE_ROUNDS
        time_calls([one for one in candidates if one.status in ("ok", REFERENCE)], us, rounds, self._mark)
        return candidates

    def _candidates(self, problem: GemmProblem, sets: list[Operands], long: bool) -> Iterator[Candidate]:
        if self._lt is None:
            yield from self._library.candidates(problem, sets, long)
            return
        chosen = self._library.chosen(problem, sets)
        if chosen is not None:
            chosen.selected = True
            yield chosen

    def _references(self, problem: GemmProblem, sets: list[Operands]) -> Iterator[Candidate]:
        dtype = problem.dtype_a
        for name, call in plain_calls(sets, dtype).items():
            yield Candidate(f"torch: {name}", call, status=REFERENCE)
        for name, library in self._others.items():
            chosen = library.chosen(problem, sets)
            if chosen is not None:
                yield Candidate(f"{name}: {chosen.name}", chosen.call, choices=chosen.choices, status=REFERENCE)
        if self._lt is not None:
            try:
                calls = self._lt.calls(sets, dtype, HEURISTICS)
            except RuntimeError as error:
                print(f"cuBLASLt: {error}", flush=True)
                calls = []
            for number, call in enumerate(calls):
                yield Candidate(f"cuBLASLt: {number}", call, status=REFERENCE)

    def _compare(self, one: Candidate, out: torch.Tensor, expected: torch.Tensor) -> None:
        poison(out)
        start, end = event(), event()
        try:
            start.record()
            one.call(0)
            end.record()
        except (RuntimeError, TypeError) as error:
            if one.status != REFERENCE or "CUDA error" in str(error):
                raise
            one.status, one.reason = "refused", str(error).partition("\n")[0]  # torch refuses some extents
            return
        if not torch.equal(out, expected):
            one.status, one.reason = "wrong", "differs from the product of whole numbers"
        one.first_us = float(start.elapsed_time(end)) * 1e3


def _whole_numbers(like: Operands, dtype: str) -> tuple[torch.Tensor, torch.Tensor]:
    """A and B of integers up to 2: sums stay exact even in the accumulators of fp8 tensor cores."""
    a, b = (torch.randint(-2, 3, x.shape, device="cuda", dtype=torch.int8).bfloat16() for x in like[:2])
    return a.to(like[0].dtype), b.to(like[1].dtype)


def _exact_product(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """torch's product in that type (fp16 or bf16), whose sums are integers in fp32, rounded once."""
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    product = a.to(dtype) @ b.to(dtype).T
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = True
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = True
    return product
