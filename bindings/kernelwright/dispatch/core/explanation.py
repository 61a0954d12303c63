"""Why a kernel was chosen: the whole ranking, with scores and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelwright.dispatch.core.operation import Problem


@dataclass(frozen=True)
class Estimate:
    """The analytic model's numbers: tiles in waves over the compute units, and how long they take.

    ``fill_us`` is for moving operands from caches to LDS (0 on CPU), ``useful`` the share of work that is no padding.
    """

    tiles: float
    waves: float
    compute_us: float
    fill_us: float
    memory_us: float
    total_us: float
    useful: float


@dataclass(frozen=True)
class RankedKernel:
    """A kernel with its rank and score (lower is better), or with the reason why it is not used.

    ``split_k`` is the number of slices that it would run with, where it serves the problem.
    """

    name: str
    arch: str
    identity: str
    library: str
    priority: int
    supported: bool
    rank: int | None
    score: float | None
    reason: str | None
    estimate: Estimate | None
    split_k: int | None = None


@dataclass(frozen=True)
class Explanation:
    """A ranking of every kernel for one problem, best first. ``chosen`` is None where no kernel serves it.

    ``simulated`` names the simulated device, if it is one: then scores in microseconds are what the analytic model
    predicts for real hardware, and nothing here was measured.
    """

    problem: Problem
    selection: str
    reason: str
    chosen: RankedKernel | None
    kernels: tuple[RankedKernel, ...]
    simulated: str | None = None

    @classmethod
    def parse(cls, problem: Problem, text: str, simulated: str | None = None) -> Explanation:
        """From the native dispatcher's JSON."""
        raw = json.loads(text)
        kernels = tuple(_ranked(entry) for entry in raw["kernels"])
        chosen = next((kernel for kernel in kernels if kernel.identity == raw["chosen"]), None)
        return cls(problem, raw["selection"], raw["reason"], chosen, kernels, simulated)

    def __iter__(self) -> Iterator[RankedKernel]:
        """Kernels, best first, refused ones last."""
        return iter(self.kernels)

    def __len__(self) -> int:
        """How many kernels were considered."""
        return len(self.kernels)

    def __str__(self) -> str:
        """A table: one line per kernel."""
        lines = [f"{self.problem}, {self.selection}: {self.reason}"]
        if self.simulated is not None:
            lines.append(f"simulated on {self.simulated}: times are predictions for real hardware, not measured")
        width = max((len(kernel.name) for kernel in self.kernels), default=0)
        for kernel in self.kernels:
            rank = "-" if kernel.rank is None else str(kernel.rank)
            lines.append(f"{rank:>4}  {kernel.name:<{width}}  {kernel.arch:<10}  {_verdict(kernel)}")
        return "\n".join(lines)


def _verdict(kernel: RankedKernel) -> str:
    if kernel.rank is None or kernel.score is None:
        return f"no: {kernel.reason}"
    if kernel.estimate is None:
        return f"{kernel.score:.3f}"
    e = kernel.estimate
    return (
        f"{e.total_us:.3f} us: compute {e.compute_us:.3f}, fill {e.fill_us:.3f}, memory {e.memory_us:.3f}, "
        f"{e.useful:.0%} useful work, "
        f"{e.tiles:.0f} tiles in {e.waves:.{0 if e.waves == int(e.waves) else 2}f} waves"
        + (f", split_k {kernel.split_k}" if (kernel.split_k or 1) > 1 else "")
    )


def _ranked(entry: dict[str, Any]) -> RankedKernel:
    fields = dict(entry)
    estimate = fields.pop("estimate", None)
    # A score can be beyond what JSON holds; the native side writes null for it.
    return RankedKernel(**fields, estimate=None if estimate is None else Estimate(**estimate))
