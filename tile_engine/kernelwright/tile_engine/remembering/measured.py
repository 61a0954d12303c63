"""A selection for ``Dispatcher`` that times the best few ranked pairs of kernel and value once per problem."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from kernelwright.dispatch import Candidate, Device, Dispatcher, Heuristic, KernelLibrary, SelectionError
from kernelwright.tile_engine.measuring.measure import Measurement, Pair, label
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.registry import OPERATIONS
from kernelwright.tile_engine.remembering.memory import describe_device, key_of, read_memory, remember

SETTINGS = Settings(warmup=2, duration_s=0.05, rounds=5, verify=True)
"""Default settings for timing kernels."""


class MeasuredSelection:
    """``Dispatcher(library, device=…, selection=MeasuredSelection(library, "memory.json", device=…))``.

    When a problem occurs for the first time, the ``top_k`` pairs that ``base`` ranks first are checked and timed in
    this process, on operands of its own, and the file stores their times for this device, driver and library. A pair is
    a kernel and a value of what the problem leaves open: slices of a sum, splits of keys. Later, and in other
    processes, the stored times decide. Problems that the tile engine cannot pose, further stages of a plan and
    simulated devices are left to ``base``. ``Dispatcher.select(problem, top_k=3, measure=True)`` does this for one
    problem.
    """

    __name__ = "measured times"

    def __init__(
        self,
        library: KernelLibrary | Sequence[KernelLibrary],
        memory: str | os.PathLike[str],
        device: Device | str = "cpu",
        top_k: int = 3,
        base: str | Heuristic | Dispatcher = "auto",
        settings: Settings = SETTINGS,
    ) -> None:
        """``base`` ranks the kernels: a selection of :class:`Dispatcher`, or a dispatcher with the same libraries.

        Raises ValueError for a ``top_k`` below 1, or a file that does not store measured times.
        """
        if top_k < 1:
            raise ValueError(f"top_k is {top_k}; allowed: at least 1")
        self._device = Device.of(device)
        self._libraries = (library,) if isinstance(library, KernelLibrary) else tuple(library)
        self._memory, self._top_k, self._settings = memory, top_k, settings
        self._base = base if isinstance(base, Dispatcher) else Dispatcher(self._libraries, self._device, base)
        self._known = read_memory(memory)
        self._where: str | None = None

    def __call__(self, problem: Any, candidates: Sequence[Candidate]) -> list[float]:
        """Score each pair: microseconds if it was measured, infinity if only others were; else ``base``'s score."""
        pairs = [(one.identity, one.value) for one in candidates]
        scores = self._ranking(problem, set(pairs))
        operation, record = self.record(problem)
        if operation and record and scores and not operation.auxiliary(candidates[0].spec):
            scores = self._times(operation, record, scores)
        if not scores:  # a stage that no plan of base has: predicted times would say as little
            return [0.0] * len(pairs)
        return [scores.get(pair, math.inf) for pair in pairs]

    def record(self, problem: object) -> tuple[Measurable | None, Record | None]:
        """The operation and the record by which a problem is measured; None for one that is left to ``base``."""
        for operation in () if self._device.simulated else OPERATIONS.values():
            if (record := operation.record_of(problem)) is not None:
                return operation, record
        return None, None

    def _ranking(self, problem: Any, pairs: set[Pair]) -> dict[Pair, float]:
        """Scores by ``base`` of the pairs of one stage, best first."""
        scores = {
            (kernel.identity, value.value): value.score
            for stage in self._base.explain(problem).stages
            for kernel, value in stage.pairs
            if (kernel.identity, value.value) in pairs
        }
        return {pair: score for pair, score in scores.items() if score is not None}

    def _times(self, operation: Measurable, record: Record, ranked: Mapping[Pair, float]) -> dict[Pair, float]:
        """Stored or new times. Raises SelectionError if none of the first pairs computes the problem correctly."""
        if self._where is None:
            self._where = describe_device(self._device)
        digest = "+".join(sorted(library.manifest.sha256 for library in self._libraries))
        key = key_of(self._where, digest, record)
        if key not in self._known:
            self._known = read_memory(self._memory)  # another process may have measured in the meantime
        if key not in self._known:
            times = self._measured(operation, record, [*ranked][: self._top_k])
            remember(self._memory, {key: times})
            self._known[key] = times
        known = self._known[key]
        return {pair: known[label(pair)] for pair in ranked if label(pair) in known}

    def _measured(self, operation: Measurable, record: Record, pairs: Sequence[Pair]) -> dict[str, float]:
        """Microseconds by pair label."""
        measurement = Measurement(self._libraries, self._device, operation, self._settings)
        reports = list(measurement.run_pairs(record, pairs, lambda identity: None))
        times = {
            label((one["kernel"], one.get("value", 0))): 1e3 * one["latency_ms"][0]
            for one in reports
            if one.get("latency_ms")
        }
        if not times:
            reasons = "; ".join(f"{one['kernel'][:12]}: {one['status']} {one['reason']}" for one in reports)
            what = f"none of the first {len(reports)} kernels computes {dict(record)} right"
            raise SelectionError(f"{what}: {reasons}")
        return times
