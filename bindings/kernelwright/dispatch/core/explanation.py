"""Why a kernel was chosen: the whole ranking, with scores and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from kernelwright.dispatch.core.operation import Problem


@dataclass(frozen=True)
class Estimate:
    """What the analytic model predicts for one kernel.

    :ivar tiles: output tiles, over all slices of k.
    :ivar waves: rounds in which the compute units work through the tiles.
    :ivar compute_us: microseconds of arithmetic.
    :ivar fill_us: microseconds to move operands from caches to LDS; 0 on CPUs.
    :ivar memory_us: microseconds to move operands and results through memory.
    :ivar total_us: predicted microseconds of the launch; the score.
    :ivar useful: share of the arithmetic that is not padding, 0 to 1.
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
    """One kernel in a ranking.

    :ivar rank: 1 for the best kernel; None for one that cannot be used.
    :ivar score: lower is better: microseconds for analytic selection; None for a kernel that cannot be used.
    :ivar reason: why the kernel cannot be used, else None.
    :ivar supported: whether the kernel itself accepts the problem.
    :ivar priority: see :meth:`Dispatcher.set_priority`.
    :ivar estimate: the analytic model's prediction, where it made one.
    :ivar split_k: number of slices of k that the kernel would run with, where it serves the problem.
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
    """The ranking of every kernel for one problem, best first; ``str()`` is a table.

    :ivar problem: the problem.
    :ivar selection: how kernels are scored, such as ``analytic``.
    :ivar reason: why ``chosen`` was chosen, or that no kernel serves the problem.
    :ivar chosen: the kernel that would run; None where no kernel serves the problem.
    :ivar kernels: all kernels, best first, refused ones last.
    :ivar simulated: name of the simulated device, or None. Scores in microseconds are then predictions for real
        hardware; nothing was measured.
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
        """All kernels, best first, refused ones last."""
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
