"""The few kernels that serve a set of problems best: a greedy cover."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kernelwright.tile_engine.results.analysis import Timed, best

UNSERVED = 0.01
"""Fraction of the best kernel's speed assumed if no chosen kernel serves a problem."""


@dataclass(frozen=True)
class Step:
    """A kernel added by the cover, and the state of the cover after it.

    :ivar efficiency: geometric mean over problems of the best chosen kernel's speed ÷ the best kernel's speed.
    :ivar worst: the lowest of these ratios.
    :ivar cost: cost of all kernels chosen so far, including companions.
    :ivar companions: identities of kernels that no earlier step added and that plans with this kernel need to prepare
        or finish its work.
    """

    identity: str
    kernel: str
    efficiency: float
    worst: float
    cost: float
    companions: tuple[str, ...] = ()


def greedy_cover(
    times: Sequence[Timed],
    cost: Callable[[str], float] = lambda identity: 1.0,
    given: Collection[str] = (),
    reach: float = math.inf,
) -> list[Step]:
    """Kernels in order of gain per cost, until none gains anything or ``reach`` is reached.

    The gain of a kernel is the increase of the sum of logarithms of speed ratios, divided by its ``cost``, in any unit,
    plus the cost of companions that it needs and that are not chosen yet. Ties are broken by identity, so equal tables
    give equal covers. Identities ``given`` are chosen from the start and are not steps.
    """
    shares, names, needs = _shares(times)
    reached = reached_by(times, given)
    for identity in given:
        shares.pop(identity, None)
    steps: list[Step] = []
    spent, brought = 0.0, set[str]()

    def price(identity: str) -> float:
        return cost(identity) + _sum(cost, needs[identity] - brought)

    while shares and mean_share(reached) < reach:
        identity = min(shares, key=lambda one: (-_gain(shares[one], reached) / price(one), one))
        of_kernel = shares.pop(identity)
        if _gain(of_kernel, reached) <= 0:
            break
        reached |= {problem: max(share, reached[problem]) for problem, share in of_kernel.items()}
        spent += price(identity)
        new = tuple(sorted(needs[identity] - brought))
        brought.update(new)
        steps.append(Step(identity, names[identity], mean_share(reached), min(reached.values()), spent, new))
    return steps


def reached_by(times: Sequence[Timed], identities: Collection[str]) -> dict[int, float]:
    """For each problem, the best of these kernels' fraction of the best kernel's speed, at least UNSERVED."""
    shares, _, _ = _shares(times)
    reached = dict.fromkeys(best(times), UNSERVED)
    for identity in identities:
        reached |= {problem: max(share, reached[problem]) for problem, share in shares.get(identity, {}).items()}
    return reached


def mean_share(reached: Mapping[int, float]) -> float:
    """Geometric mean over problems."""
    return math.exp(math.fsum(map(math.log, reached.values())) / len(reached))


def _shares(times: Sequence[Timed]) -> tuple[dict[str, dict[int, float]], dict[str, str], dict[str, set[str]]]:
    """Fractions of the best kernel's speed by identity and problem, names, and the companions of plans."""
    fastest = {problem: one.milliseconds for problem, one in best(times).items()}
    shares: dict[str, dict[int, float]] = {}
    names: dict[str, str] = {}
    needs: dict[str, set[str]] = {}
    for one in times:
        needs.setdefault(one.identity, set()).update(one.stages)
        of_kernel = shares.setdefault(one.identity, {})
        of_kernel[one.problem] = max(of_kernel.get(one.problem, 0.0), fastest[one.problem] / one.milliseconds)
        names[one.identity] = one.kernel
    return shares, names, needs


def _sum(cost: Callable[[str], float], identities: Iterable[str]) -> float:
    return math.fsum(cost(identity) for identity in identities)


def _gain(of_kernel: dict[int, float], reached: dict[int, float]) -> float:
    return math.fsum(
        math.log(share / reached[problem]) for problem, share in of_kernel.items() if share > reached[problem]
    )
