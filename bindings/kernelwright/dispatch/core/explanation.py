"""Why a kernel was chosen: the complete ranking, with scores and refusals."""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kernelwright.dispatch.core.operation import Problem
from kernelwright.files import arch_files

FITTED = (
    "times of GEMM and convolution are predicted from counts and from constants fitted to measurements that AMD"
    " published, other times are bounds; never measured by us"
)
BOUNDS = "times are bounds by stated rates; never measured by us"


@dataclass(frozen=True, repr=False)
class Estimate:
    """The analytic model's prediction for one kernel.

    :ivar tiles: output tiles, over all slices of k.
    :ivar waves: rounds in which the compute units process the tiles.
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

    def __repr__(self) -> str:
        """As in a line of the table."""
        return f"<Estimate {self}>"

    def __str__(self) -> str:
        """Times, useful share of the arithmetic, tiles and waves."""
        waves = f"{self.waves:.{0 if self.waves == int(self.waves) else 2}f}"
        return (
            f"{self.total_us:.3f} us: compute {self.compute_us:.3f}, fill {self.fill_us:.3f}, "
            f"memory {self.memory_us:.3f}, {self.useful:.0%} useful work, {self.tiles:.0f} tiles in {waves} waves"
        )


@dataclass(frozen=True)
class RankedValue:
    """One value of a quantity that the problem leaves open, with which a kernel serves the problem.

    :ivar value: the number of slices or splits; 0 if nothing is open.
    :ivar choices: the value in words, such as ``split_k=4``.
    :ivar score: as for :class:`RankedKernel`; None for a value that cannot be used.
    """

    value: int
    choices: str
    score: float | None


@dataclass(frozen=True, repr=False)
class RankedKernel:
    """One kernel in a ranking.

    :ivar rank: 1 for the best kernel; None for one that cannot be used.
    :ivar score: lower is better: microseconds for analytic selection; None for a kernel that cannot be used.
    :ivar reason: why the kernel cannot be used, else None.
    :ivar supported: whether the kernel itself accepts the problem.
    :ivar lacks_features: whether the device lacks instructions that the kernel needs for any problem.
    :ivar priority: see :meth:`Dispatcher.set_priority`.
    :ivar estimate: the analytic model's prediction, if it made one.
    :ivar choices: the kernel's values of what the problem leaves open, such as ``split_k=4``; empty if nothing is open
        or the kernel does not serve the problem.
    :ivar values: if the problem leaves something open, every value with which the kernel serves it, best first;
        ``score``, ``estimate`` and ``choices`` belong to the first one.
    :ivar short: a short description as :attr:`KernelEntry.short`; by default the name.
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
    choices: str = ""
    values: tuple[RankedValue, ...] = ()
    short: str = ""
    lacks_features: bool = False

    def __post_init__(self) -> None:
        """Default ``short`` to the name."""
        object.__setattr__(self, "short", self.short or self.name)

    def __repr__(self) -> str:
        """Rank, short description and score, or why the kernel cannot be used."""
        said = self.reason if self.rank is None else f"rank {self.rank}, score {self.score}"
        return f"<RankedKernel {self.arch}: {self.short}\n {said}{self.choices and f', {self.choices}'}>"


@dataclass(frozen=True, repr=False)
class StageExplanation:
    """The ranking of every kernel for one stage, best first.

    :ivar problem: the problem of the stage, as JSON values.
    :ivar reason: why ``chosen`` was chosen, or that no kernel serves the stage.
    :ivar chosen: the kernel that would run; None if no kernel serves the stage.
    :ivar kernels: all kernels, best first, refused ones last.
    :ivar ranked_by: what ordered them: ``predicted time``, ``priority``, ``name``, or the name of a model or function.
    """

    problem: Mapping[str, Any]
    reason: str
    chosen: RankedKernel | None
    kernels: tuple[RankedKernel, ...]
    ranked_by: str = ""

    @classmethod
    def parse(cls, raw: Mapping[str, Any], short: Mapping[str, str]) -> StageExplanation:
        """Parse the native dispatcher's JSON; ``short`` maps identities to short descriptions."""
        kernels = tuple(_ranked(entry, short.get(entry["identity"], "")) for entry in raw["kernels"])
        chosen = next((kernel for kernel in kernels if kernel.identity == raw["chosen"]), None)
        return cls(raw["problem"], raw["reason"], chosen, kernels, raw["ranked_by"])

    def __repr__(self) -> str:
        """Reason, ranking criterion and the chosen kernel."""
        chosen = "none" if self.chosen is None else self.chosen.short
        return f"<StageExplanation: {chosen} of {len(self.kernels)},\n ranked by {self.ranked_by}: {self.reason}>"

    @property
    def pairs(self) -> tuple[tuple[RankedKernel, RankedValue], ...]:
        """Every kernel with every usable value, best first."""
        scored = [
            (value.score, kernel, value)
            for kernel in self.kernels
            for value in kernel.values or (RankedValue(0, kernel.choices, kernel.score),)
            if value.score is not None and kernel.rank is not None
        ]
        return tuple((kernel, value) for _, kernel, value in sorted(scored, key=lambda one: one[0]))


@dataclass(frozen=True, repr=False)
class Explanation:
    """The ranking of every kernel for one problem, best first; ``str()`` is a table.

    :ivar problem: the problem.
    :ivar selection: the selection requested of the dispatcher, such as ``auto``; ``ranked_by`` says what it resolved
        to.
    :ivar stages: the ranking of each stage: one, unless a launch starts several kernels in sequence. A stage that no
        kernel serves is the last one.
    :ivar simulated: name of the simulated device, or None. On such a device, scores in microseconds are predictions for
        real hardware; nothing was measured.
    """

    problem: Problem
    selection: str
    stages: tuple[StageExplanation, ...]
    simulated: str | None = None

    @classmethod
    def parse(
        cls, problem: Problem, text: str, simulated: str | None = None, short: Mapping[str, str] | None = None
    ) -> Explanation:
        """Parse the native dispatcher's JSON; ``short`` maps identities of kernels to short descriptions."""
        raw = json.loads(text)
        stages = tuple(StageExplanation.parse(stage, short or {}) for stage in raw.get("stages", [raw]))
        return cls(problem, raw["selection"], stages, simulated)

    @property
    def chosen(self) -> RankedKernel | None:
        """The kernel that would run, the first of several stages; None if no kernel serves the problem."""
        return self.stages[0].chosen if self.stages[-1].chosen is not None else None

    @property
    def reason(self) -> str:
        """Why the kernel of the first stage was chosen, or that no kernel serves the problem."""
        return self.stages[0].reason if self.stages[-1].chosen is not None else self.stages[-1].reason

    @property
    def ranked_by(self) -> str:
        """What ranked the kernels of the first stage: ``predicted time``, or the name of a model or function."""
        return self.stages[0].ranked_by

    @property
    def kernels(self) -> tuple[RankedKernel, ...]:
        """All kernels ranked for the first stage, best first, refused ones last."""
        return self.stages[0].kernels

    def __iter__(self) -> Iterator[RankedKernel]:
        """All kernels, best first, refused ones last."""
        return iter(self.kernels)

    def __len__(self) -> int:
        """Number of kernels considered."""
        return len(self.kernels)

    def __repr__(self) -> str:
        """The first line of the table."""
        return f"<Explanation of {self._title}>"

    @property
    def _title(self) -> str:
        ranked = "" if self.ranked_by == self.selection else f", ranked by {self.ranked_by}"
        return f"{self.problem}, selection {self.selection}{ranked}: {self.reason}"

    def __str__(self) -> str:
        """A table with a line for each usable kernel of each stage, and one for each reason why others are refused."""
        lines = [self._title]
        if self.simulated is not None:
            lines.append(f"simulated on {self.simulated}: times are predictions for real hardware, not measured")
        lines += [claim for claim in sorted({claim_of(kernel.arch) for kernel in self.kernels}) if claim]
        for number, stage in enumerate(self.stages):
            if len(self.stages) > 1:
                lines.append(f"stage {number}, ranked by {stage.ranked_by}: {stage.reason}")
            rows = _rows(stage.kernels)
            width = max((len(label) for _, label, _ in rows), default=0)
            for rank, label, kernel in rows:
                lines.append(f"{rank:>4}  {label:<{width}}  {kernel.arch:<10}  {_verdict(kernel)}")
        return "\n".join(lines)


def _rows(kernels: tuple[RankedKernel, ...]) -> list[tuple[str, str, RankedKernel]]:
    """Rank, label and kernel of each line; kernels refused for the same reason share a line."""
    shared = Counter(kernel.short for kernel in kernels)
    refused: dict[tuple[str, str | None], list[RankedKernel]] = {}
    rows = []
    for kernel in kernels:
        label = kernel.short + ("" if shared[kernel.short] == 1 else f" {kernel.identity[:8]}")
        if kernel.rank is None:
            refused.setdefault((kernel.arch, kernel.reason), []).append(kernel)
        else:
            rows.append((str(kernel.rank), label, kernel))
    for group in refused.values():
        others = f" and {len(group) - 1} more" if len(group) > 1 else ""
        rows.append(("-", f"{group[0].short}{others}", group[0]))
    return rows


@functools.lru_cache
def claim_of(arch: str) -> str:
    """Basis of the times of a shipped architecture; empty if they were measured here, and for other names."""
    if arch in arch_files.own_names() or arch not in arch_files.names():
        return ""
    facts, _ = arch_files.read(arch)
    if facts["backend"] != "ck_tile":
        return ""
    return FITTED if facts["time_model"] in ("cdna3", "cdna4") else BOUNDS


def _verdict(kernel: RankedKernel) -> str:
    if kernel.rank is None or kernel.score is None:
        return f"no: {kernel.reason}"
    if kernel.estimate is None:
        return f"{kernel.score:.3f}"
    return f"{kernel.estimate}{kernel.choices and f', {kernel.choices}'}"


def _ranked(entry: dict[str, Any], short: str) -> RankedKernel:
    fields = dict(entry)
    estimate = fields.pop("estimate", None)
    values = tuple(RankedValue(**value) for value in fields.pop("values", ()))
    # A score can exceed the range of JSON numbers; the native side then writes null.
    return RankedKernel(
        **fields, estimate=None if estimate is None else Estimate(**estimate), values=values, short=short
    )
