"""The time model of attention, as :class:`kernelwright.codegen.operation.TimeModel` describes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.formulas.devices import CPU_CORES
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Candidate
from kernelwright.codegen.operations.attention.rules.checks import dq_slices, leaves
from kernelwright.codegen.operations.attention.spec import attention_spec
from kernelwright.codegen.operations.attention.time_model.measured import posed_of_row
from kernelwright.codegen.operations.attention.time_model.problem import (
    Stage,
    TimedProblem,
    read_append,
    read_fields,
)
from kernelwright.codegen.operations.attention.time_model.serves import (
    STAGES,
    append_of,
    append_refusal,
    problem_of,
    refusal,
)
from kernelwright.codegen.operations.attention.time_model.times import estimate, moved, splits_that_fill
from kernelwright.codegen.operations.attention.time_model.traits import Described, described
from kernelwright.problems.attention.append_problem import AppendProblem

APPEND = "attention append"
_CHOICES = 24  # kMaxChoices in operation.hpp


class AttentionTimeModel:
    """Predicts times and says which sets could serve a problem."""

    recorded = ("attention", APPEND)

    def read(self, raw: Mapping[str, Any], recorded: str = "attention") -> TimedProblem | AppendProblem:
        """See :func:`.problem.read_fields` and :func:`.problem.read_append`."""
        return read_append(raw) if recorded == APPEND else read_fields(raw)

    def measured(self, row: Mapping[str, str]) -> TimedProblem | AppendProblem | None:
        """See :func:`.measured.posed_of_row`."""
        return posed_of_row(row) if "nhead_q" in row else None

    def key(self, problem: TimedProblem | AppendProblem) -> Hashable:
        """Return a key that is equal for problems that one measurement stands for."""
        if not isinstance(problem, TimedProblem):
            return problem
        return dataclasses.replace(problem, whole=dataclasses.replace(problem.whole, num_splits=0), num_splits=0)

    def candidate_sets(self, problem: TimedProblem | AppendProblem) -> tuple[str, ...]:
        """The written sets, and all kernels with every feature; for fp32 or 8 bits the sets that have such kernels."""
        further = {"fp32": ("fp32_all",), "fp8": ("fp8_test",)}.get(_dtype(problem), ())
        return ("release", "ck_default", *further)

    def fitted(self, kernel: Kernel, problem: TimedProblem | AppendProblem) -> None:
        """Return None: the sets have kernels with every feature."""

    def candidates(
        self, kernel: Kernel, problem: TimedProblem | AppendProblem, arch: Arch, units: int | None = None
    ) -> tuple[Candidate, ...]:
        """Whole, and with the best number of splits, which a combine kernel adds up; gradients with their other stages.

        For the stated device, or for CPU_CORES, unless ``units`` gives the number of compute units.
        """
        spec = attention_spec(kernel)
        stage = STAGES[spec.family]
        if stage is not (Stage.APPEND if isinstance(problem, AppendProblem) else problem.main):
            return ()
        if stage not in (Stage.COMBINE, Stage.DOT) and spec.dtype.inputs != _dtype(problem):
            return ()  # as traits would say, only faster
        k, units = described(spec, arch), units or arch.compute_units or CPU_CORES
        if isinstance(problem, AppendProblem):
            refused = append_refusal(k, append_of(problem), arch)
            return () if refused else (Candidate(moved(k, problem.elements, problem.dtype, arch, units)),)
        own = _chosen(k, problem)
        if refusal(k, problem_of(own), arch):
            return ()
        if stage is Stage.PART:
            return tuple(_forward(k, problem, arch, units))
        if stage is not Stage.DQ_DK_DV:
            return (Candidate(estimate(k, own, arch, units)),)
        convert = (dataclasses.replace(own, stage=Stage.CONVERT_DQ),) if own.dq_slices else ()
        dot = dataclasses.replace(problem, stage=Stage.DOT)
        return (Candidate(estimate(k, own, arch, units), (dot, *convert)),)


def _dtype(problem: TimedProblem | AppendProblem) -> str:
    return problem.whole.dtype if isinstance(problem, TimedProblem) else problem.dtype


def _chosen(k: Described, p: TimedProblem) -> TimedProblem:
    """Return the problem with the fewest splits, and what the kernel leaves."""
    if p.main is Stage.PART:
        splits = max(1, p.num_splits)
        return dataclasses.replace(p, stage=Stage.PART, num_splits=splits, leaves_splits=leaves(k.traits, splits))
    if p.main is Stage.DQ_DK_DV:
        return dataclasses.replace(p, stage=Stage.DQ_DK_DV, dq_slices=dq_slices(k.traits, problem_of(p)))
    return p


def _forward(k: Described, p: TimedProblem, arch: Arch, units: int) -> Iterator[Candidate]:
    """Yield the best number of splits that the kernel itself adds up, and the best of those that it leaves."""
    best: dict[bool, tuple[float, TimedProblem]] = {}
    for splits in split_choices(k, p, arch, units):
        own = _chosen(k, dataclasses.replace(p, num_splits=splits))
        us = 0.0 if p.whole.rows == 0 else estimate(k, own, arch, units)
        if own.leaves_splits not in best or us < best[own.leaves_splits][0]:
            best[own.leaves_splits] = us, own
    for left, (us, own) in best.items():
        combine = dataclasses.replace(own, stage=Stage.COMBINE, leaves_splits=False)
        yield Candidate(us, (combine,) if left else ())


def split_choices(k: Described, p: TimedProblem, arch: Arch, units: int) -> list[int]:
    """Return the numbers of key splits worth estimating, as the dispatcher's operation.cpp lists them."""
    t = k.traits
    if p.num_splits != 0:
        return [p.num_splits] if p.num_splits <= t.max_splits else []
    most = min(max(1, -(-p.whole.seqlen_k // t.tile_n0)), t.max_splits)
    counts: list[int] = []
    filling = splits_that_fill(k, p, arch, units)
    while 1 < filling <= most and len(counts) < 2:
        counts.append(filling)
        filling *= 2
    power = 1
    while power <= most and len(counts) + 1 < _CHOICES:
        counts += [power, *([power + power // 2] if 1 < power <= most - power // 2 else [])]
        power *= 2
    return counts
