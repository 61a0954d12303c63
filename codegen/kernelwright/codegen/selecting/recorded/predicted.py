"""Predicted times of kernels on recorded problems, including the kernels of further stages."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import Candidate
from kernelwright.codegen.selecting.recorded.cover import Option
from kernelwright.codegen.selecting.recorded.trace import Wanted


@dataclass(frozen=True)
class Time:
    """Microseconds of a plan, ``predicted`` or ``measured``."""

    microseconds: float
    source: str


def predicted(
    candidates: Iterable[Kernel], wanted: Sequence[Wanted], arch: Arch, measured: Collection[Hashable]
) -> dict[Option, dict[int, Time]]:
    """Return times by the kernels of a plan and the index of a problem; measured problems are left out.

    Each further stage of a plan takes the candidate that is fastest there; ties go to the first.
    """
    kernels: dict[str, list[Kernel]] = {}
    for kernel in candidates:
        kernels.setdefault(kernel.spec.op, []).append(kernel)
    behind: dict[Hashable, tuple[float, str] | None] = {}
    times: dict[Option, dict[int, Time]] = {}
    for index, one in enumerate(wanted):
        model = one.model
        for kernel in kernels.get(one.op, ()) if one.key not in measured else ():
            for candidate in model.candidates(kernel, one.asked, arch):
                stages = _stages(one, candidate, kernels[one.op], arch, behind)
                if stages is not None:
                    us, others = stages
                    of = times.setdefault((kernel.identity, *others), {})
                    of[index] = Time(min(us, of[index].microseconds if index in of else us), "predicted")
    return times


def _stages(
    one: Wanted,
    candidate: Candidate,
    kernels: Sequence[Kernel],
    arch: Arch,
    known: dict[Hashable, tuple[float, str] | None],
) -> tuple[float, Option] | None:
    """Return the time of all stages, and the kernels of the further ones; None if no candidate serves one of them."""
    us = candidate.microseconds
    others: list[str] = []
    for problem in candidate.further:
        if (one.op, problem) not in known:
            model = one.model
            times = [
                (each.microseconds, kernel.identity)
                for kernel in kernels
                for each in model.candidates(kernel, problem, arch)
            ]
            known[one.op, problem] = min(times, key=lambda time: time[0], default=None)
        fastest = known[one.op, problem]
        if fastest is None:
            return None
        us += fastest[0]
        others.append(fastest[1])
    return us, tuple(others)
