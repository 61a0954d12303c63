"""Quality of choices: fractions of the fastest kernel's speed, with the numbers behind them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kernelwright.tile_engine.learning.examples import Examples
from kernelwright.tile_engine.results.analysis import TOP


@dataclass(frozen=True)
class Evaluation:
    """Fractions of the speed of each problem's fastest measured kernel.

    :ivar problems: number of problems that every statistic is taken over.
    :ivar mean: mean for the kernel with the highest score; likewise ``median``, ``p10`` and ``minimum``.
    :ivar hits: problems whose fastest kernel is among the top 1, 3 and 5.
    :ivar top: mean fraction for the fastest of the top 1, 3 and 5, as if these were measured again.
    """

    problems: int
    mean: float
    median: float
    p10: float
    minimum: float
    hits: Mapping[int, int]
    top: Mapping[int, float]

    def as_json(self) -> dict[str, Any]:
        """JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        """One line."""
        hits = ", ".join(f"top-{k} {self.hits[k]}/{self.problems}" for k in TOP)
        top = ", ".join(f"best of {k} {self.top[k]:.4f}" for k in TOP[1:])
        return (
            f"{self.problems} problems: mean {self.mean:.4f}, median {self.median:.4f}, P10 {self.p10:.4f}, "
            f"min {self.minimum:.4f}; {hits}; {top}"
        )


def evaluate(examples: Examples, scores: np.ndarray[Any, Any]) -> Evaluation:
    """Evaluate choosing the kernel with the highest score. ValueError without examples."""
    if not len(scores):
        raise ValueError("there is nothing to evaluate")
    shares: list[list[float]] = []
    for problem in np.unique(examples.problem):
        rows = np.flatnonzero(examples.problem == problem)
        speed = examples.tflops[rows] / examples.tflops[rows].max()
        shares.append([float(share) for share in speed[np.argsort(-scores[rows], kind="stable")]])
    first = sorted(ranked[0] for ranked in shares)
    return Evaluation(
        problems=len(first),
        mean=statistics.fmean(first),
        median=statistics.median(first),
        p10=first[max(0, -(-len(first) // 10) - 1)],
        minimum=first[0],
        hits={k: sum(max(ranked[:k]) == 1.0 for ranked in shares) for k in TOP},
        top={k: statistics.fmean(max(ranked[:k]) for ranked in shares) for k in TOP},
    )
