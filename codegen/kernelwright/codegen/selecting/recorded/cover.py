"""A greedy choice of kernels: each next one saves the most time of all problems for what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

LEAST_GAIN = 1e-3
"""Share of the remaining time that a further kernel must save."""
_UNSERVED = 1e3  # times the best kernel's time, for a problem without a kernel


@dataclass(frozen=True)
class Budget:
    """At most so many kernels and compile seconds; None for no limit."""

    kernels: int | None = None
    seconds: float | None = None


def choose(
    times: Mapping[str, Mapping[int, float]], counts: Sequence[int], seconds: Mapping[str, float], budget: Budget
) -> list[str]:
    """Kernels in the order in which they save the most, without those that later ones outdo; equal gains go by key.

    ``times`` holds microseconds by kernel and problem, ``counts`` how often each problem is posed, ``seconds`` what a
    kernel costs to compile. With a budget of seconds these divide the gain. Every problem must have some time.
    """
    best = {index: min(of[index] for of in times.values() if index in of) for index in range(len(counts))}
    now = {index: us * _UNSERVED for index, us in best.items()}
    chosen: list[str] = []
    spent = 0.0
    while budget.kernels is None or len(chosen) < budget.kernels:
        gains = {
            kernel: sum(counts[index] * max(0.0, now[index] - us) for index, us in of.items())
            for kernel, of in times.items()
            if kernel not in chosen and (budget.seconds is None or spent + seconds[kernel] <= budget.seconds)
        }
        price = seconds if budget.seconds is not None else dict.fromkeys(gains, 1.0)
        least = LEAST_GAIN * sum(counts[index] * us for index, us in now.items())
        worth = [kernel for kernel, gain in gains.items() if gain > least]
        if not worth:
            break
        taken = min(worth, key=lambda kernel: (-gains[kernel] / price[kernel], kernel))
        chosen.append(taken)
        spent += seconds[taken]
        now = {index: min(us, times[taken].get(index, us)) for index, us in now.items()}
    return [kernel for kernel in chosen if kernel in set(fastest(times, chosen, len(counts)).values())]


def fastest(times: Mapping[str, Mapping[int, float]], chosen: Sequence[str], problems: int) -> dict[int, str]:
    """The chosen kernel that serves each problem with the least time; without problems that none serves."""
    found = {}
    for index in range(problems):
        serving = [(times[kernel][index], kernel) for kernel in chosen if index in times[kernel]]
        if serving:
            found[index] = min(serving)[1]
    return found
