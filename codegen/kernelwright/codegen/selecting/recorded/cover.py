"""A greedy choice of kernels: each next one, with those that it needs, saves the most time for what it costs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

LEAST_GAIN = 1e-3
"""Share of the remaining time that a further kernel must save."""
_UNSERVED = 1e3  # times the best kernel's time, for a problem without a kernel

Option = tuple[str, ...]
"""Kernels that serve a problem together, one for each of its stages."""
Times = Mapping[Option, Mapping[int, float]]
"""Microseconds by option and problem."""


@dataclass(frozen=True)
class Budget:
    """At most so many kernels and compile seconds; None for no limit."""

    kernels: int | None = None
    seconds: float | None = None


def choose(times: Times, counts: Sequence[int], seconds: Mapping[str, float], budget: Budget) -> list[str]:
    """Kernels in the order in which they save the most, without those that later ones outdo; of equal ones the first.

    ``counts`` says how often each problem occurs, ``seconds`` what a kernel costs to compile. The gain of an option
    is divided by the number of kernels that it adds, with a budget of seconds by their seconds. Every problem must have
    some time.
    """
    best = {index: min(of[index] for of in times.values() if index in of) for index in range(len(counts))}
    now = {index: us * _UNSERVED for index, us in best.items()}
    chosen: list[str] = []
    while True:
        new = {option: [kernel for kernel in option if kernel not in chosen] for option in times}
        gains = {
            option: sum(counts[index] * max(0.0, now[index] - us) for index, us in times[option].items())
            for option, added in new.items()
            if added and _affordable([*chosen, *added], seconds, budget)
        }
        least = LEAST_GAIN * sum(counts[index] * us for index, us in now.items())
        worth = [option for option, gain in gains.items() if gain > least]
        if not worth:
            break
        taken = max(worth, key=lambda option: gains[option] / _price(new[option], seconds, budget))
        chosen += new[taken]
        for index, option in fastest(times, chosen, len(counts)).items():
            now[index] = min(now[index], times[option][index])
    used = {kernel for option in fastest(times, chosen, len(counts)).values() for kernel in option}
    return [kernel for kernel in chosen if kernel in used]


def fastest(times: Times, chosen: Collection[str], problems: int) -> dict[int, Option]:
    """The option out of chosen kernels that serves each problem with the least time, of equal ones the first.

    Without problems that none serves.
    """
    there = set(chosen)
    quickest: dict[int, tuple[float, Option]] = {}
    for option in times:
        if there.issuperset(option):
            for index, us in times[option].items():
                if index not in quickest or us < quickest[index][0]:
                    quickest[index] = us, option
    return {index: quickest[index][1] for index in range(problems) if index in quickest}


def _affordable(kernels: Sequence[str], seconds: Mapping[str, float], budget: Budget) -> bool:
    few = budget.kernels is None or len(kernels) <= budget.kernels
    return few and (budget.seconds is None or sum(seconds[kernel] for kernel in kernels) <= budget.seconds)


def _price(added: Sequence[str], seconds: Mapping[str, float], budget: Budget) -> float:
    return len(added) if budget.seconds is None else sum(seconds[kernel] for kernel in added)
