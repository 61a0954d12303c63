"""The time model of attention as :class:`kernelwright.codegen.operation.TimeModel` describes one."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from kernelwright.arch import Arch
from kernelwright.codegen.formulas.devices import CPU_CORES
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Way
from kernelwright.codegen.operations.attention.rules.checks import dq_slices, leaves
from kernelwright.codegen.operations.attention.spec import attention_spec
from kernelwright.codegen.operations.attention.time_model.append import PosedAppend, read_append
from kernelwright.codegen.operations.attention.time_model.measured import posed_of_row
from kernelwright.codegen.operations.attention.time_model.posed import Posed, Stage, read_posed
from kernelwright.codegen.operations.attention.time_model.serves import (
    STAGES,
    append_of,
    append_refusal,
    problem_of,
    refusal,
)
from kernelwright.codegen.operations.attention.time_model.times import estimate, moved, splits_that_fill
from kernelwright.codegen.operations.attention.time_model.traits import Described, described

APPEND = "attention append"
_CHOICES = 24  # kMaxChoices of operation.hpp


class AttentionTimeModel:
    """Predicts times and says which sets could serve a problem."""

    recorded = ("attention", APPEND)

    def read(self, problem: Mapping[str, Any], recorded: str = "attention") -> Posed | PosedAppend:
        """See :func:`.posed.read_posed` and :func:`.append.read_append`."""
        return read_append(problem) if recorded == APPEND else read_posed(problem)

    def measured(self, row: Mapping[str, str]) -> Posed | PosedAppend | None:
        """See :func:`.measured.posed_of_row`."""
        return posed_of_row(row) if "nhead_q" in row else None

    def key(self, posed: Posed | PosedAppend) -> Hashable:
        """Equal for problems that one measurement stands for."""
        return dataclasses.replace(posed, num_splits=0) if isinstance(posed, Posed) else posed

    def candidate_sets(self, posed: Posed | PosedAppend) -> tuple[str, ...]:
        """The written sets, and all kernels with every feature, of fp32 or 8 bits those that have them."""
        further = {"fp32": ("fp32_all",), "fp8": ("fp8_test",)}.get(posed.dtype, ())
        return ("essential", "release", "ck_default", *further)

    def fitted(self, kernel: Kernel, posed: Posed | PosedAppend) -> None:
        """None: the sets have kernels with every feature."""

    def ways(self, kernel: Kernel, posed: Posed | PosedAppend, arch: Arch, units: int | None = None) -> tuple[Way, ...]:
        """Whole, and with the best number of splits, which a combination adds up; gradients with what they need.

        On the stated device, or on CPU_CORES, unless ``units`` says how many compute units there are.
        """
        spec = attention_spec(kernel)
        stage = STAGES[spec.family]
        if stage is not (Stage.APPEND if isinstance(posed, PosedAppend) else posed.main):
            return ()
        if stage not in (Stage.COMBINE, Stage.DOT) and spec.dtype.inputs != posed.dtype:
            return ()  # as traits would say, in less time
        k, units = described(spec, arch), units or arch.compute_units or CPU_CORES
        if isinstance(posed, PosedAppend):
            refused = append_refusal(k, append_of(posed), arch)
            return () if refused else (Way(moved(k, posed.elements, posed.dtype, arch, units)),)
        own = _chosen(k, posed)
        if refusal(k, problem_of(own), arch):
            return ()
        if stage is Stage.PART:
            return tuple(_forward(k, posed, arch, units))
        if stage is not Stage.DQ_DK_DV:
            return (Way(estimate(k, own, arch, units)),)
        convert = (dataclasses.replace(own, stage=Stage.CONVERT_DQ),) if own.dq_slices else ()
        dot = dataclasses.replace(posed, stage=Stage.DOT)
        return (Way(estimate(k, own, arch, units), (dot, *convert)),)


def _chosen(k: Described, p: Posed) -> Posed:
    """With the fewest splits, and what the kernel leaves."""
    if p.main is Stage.PART:
        splits = max(1, p.num_splits)
        return dataclasses.replace(p, stage=Stage.PART, num_splits=splits, leaves_splits=leaves(k.traits, splits))
    if p.main is Stage.DQ_DK_DV:
        return dataclasses.replace(p, stage=Stage.DQ_DK_DV, dq_slices=dq_slices(k.traits, problem_of(p)))
    return p


def _forward(k: Described, p: Posed, arch: Arch, units: int) -> Iterator[Way]:
    """The best number of splits that the kernel itself adds up, and the best of those that it leaves."""
    best: dict[bool, tuple[float, Posed]] = {}
    for splits in split_choices(k, p, arch, units):
        own = _chosen(k, dataclasses.replace(p, num_splits=splits))
        us = 0.0 if p.rows == 0 else estimate(k, own, arch, units)
        if own.leaves_splits not in best or us < best[own.leaves_splits][0]:
            best[own.leaves_splits] = us, own
    for left, (us, own) in best.items():
        combine = dataclasses.replace(own, stage=Stage.COMBINE, leaves_splits=False)
        yield Way(us, (combine,) if left else ())


def split_choices(k: Described, p: Posed, arch: Arch, units: int) -> list[int]:
    """Numbers of parts of the keys that are worth estimating, as the dispatcher's operation.cpp lists them."""
    t = k.traits
    if p.num_splits != 0:
        return [p.num_splits] if p.num_splits <= t.max_splits else []
    most = min(max(1, -(-p.seqlen_k // t.tile_n0)), t.max_splits)
    found: list[int] = []
    filling = splits_that_fill(k, p, arch, units)
    while 1 < filling <= most and len(found) < 2:
        found.append(filling)
        filling *= 2
    power = 1
    while power <= most and len(found) + 1 < _CHOICES:
        found += [power, *([power + power // 2] if 1 < power <= most - power // 2 else [])]
        power *= 2
    return found
