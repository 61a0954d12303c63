"""Which few kernels serve a set of problems best: a greedy cover."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelwright.tile_engine.results.analysis import Timed, best

UNSERVED = 0.01
"""Share of the best kernel's speed that counts where no chosen kernel serves a problem."""


@dataclass(frozen=True)
class Step:
    """A kernel that the cover adds, and where that leaves it.

    :ivar efficiency: geometric mean over problems of the best chosen kernel's speed ÷ the best kernel's speed.
    :ivar worst: the least of these shares.
    :ivar cost: of all kernels chosen so far.
    """

    identity: str
    kernel: str
    efficiency: float
    worst: float
    cost: float


def greedy_cover(times: Sequence[Timed], cost: Callable[[str], float] = lambda identity: 1.0) -> list[Step]:
    """Kernels in the order in which they gain most for their cost, until none gains anything.

    The gain of a kernel is the rise of the sum of logarithms of shares; ``cost`` of an identity, in any unit, divides
    it. Equal gains are decided by identity, so equal tables give equal covers.
    """
    fastest = {problem: one.milliseconds for problem, one in best(times).items()}
    shares: dict[str, dict[int, float]] = {}
    names: dict[str, str] = {}
    for one in times:
        of_kernel = shares.setdefault(one.identity, {})
        of_kernel[one.problem] = max(of_kernel.get(one.problem, 0.0), fastest[one.problem] / one.milliseconds)
        names[one.identity] = one.kernel
    reached = dict.fromkeys(fastest, UNSERVED)
    steps: list[Step] = []
    spent = 0.0
    while shares:
        identity = min(shares, key=lambda one: (-_gain(shares[one], reached) / cost(one), one))
        of_kernel = shares.pop(identity)
        if _gain(of_kernel, reached) <= 0:
            break
        reached |= {problem: max(share, reached[problem]) for problem, share in of_kernel.items()}
        spent += cost(identity)
        mean = math.exp(math.fsum(map(math.log, reached.values())) / len(reached))
        steps.append(Step(identity, names[identity], mean, min(reached.values()), spent))
    return steps


def _gain(of_kernel: dict[int, float], reached: dict[int, float]) -> float:
    return math.fsum(
        math.log(share / reached[problem]) for problem, share in of_kernel.items() if share > reached[problem]
    )
