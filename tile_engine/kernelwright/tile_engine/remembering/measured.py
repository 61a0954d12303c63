"""A selection for ``Dispatcher``: the best few kernels of a ranking are timed once for each problem."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

from kernelwright.dispatch import (
    Device,
    Dispatcher,
    Heuristic,
    KernelEntry,
    KernelLibrary,
    SelectionError,
)
from kernelwright.tile_engine.measuring.executors import require_timed
from kernelwright.tile_engine.measuring.measure import Measurement
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.operation import Measurable, Record
from kernelwright.tile_engine.registry import OPERATIONS
from kernelwright.tile_engine.remembering.memory import describe_device, key_of, read_memory, remember

_SETTINGS = Settings(warmup=2, duration_s=0.05, rounds=5, verify=True)


class MeasuredSelection:
    """``Dispatcher(library, device=…, selection=MeasuredSelection(library, "memory.json", device=…))``.

    The first time that a problem is posed, the ``top_k`` kernels that ``base`` ranks first are checked and timed in
    this process, on operands of its own, and the file remembers their times for this device, driver and library. Later,
    and in other processes, the remembered times decide. Plain products and convolutions of dense tensors are measured;
    other problems, and simulated devices, are left to ``base``.
    """

    __name__ = "measured times"

    def __init__(
        self,
        library: KernelLibrary,
        memory: str | os.PathLike[str],
        device: Device | str = "cpu",
        top_k: int = 3,
        base: str | Heuristic = "auto",
        settings: Settings = _SETTINGS,
    ) -> None:
        """ValueError for a ``top_k`` below 1, an AMD GPU, or a file that is no memory of measured times."""
        if top_k < 1:
            raise ValueError(f"top_k is {top_k}; allowed: at least 1")
        self._device = Device.of(device)
        require_timed(self._device)
        self._library, self._memory, self._top_k, self._settings = library, memory, top_k, settings
        self._base = Dispatcher(library, device=self._device, selection=base)
        self._known = read_memory(memory)
        self._where: str | None = None

    def __call__(self, problem: Any, candidates: Sequence[KernelEntry]) -> list[float]:
        """A score for each candidate: microseconds if they were measured, infinite if others were; else ``base``'s."""
        ranking = {one.identity: one.score for one in self._base.explain(problem) if one.score is not None}
        operation, record = (None, None) if self._device.simulated else _record(problem)
        scores = self._times(operation, record, list(ranking)) if operation and record and ranking else ranking
        return [scores.get(one.identity, math.inf) for one in candidates]

    def _times(self, operation: Measurable, record: Record, ranked: Sequence[str]) -> dict[str, float]:
        """Remembered or new. SelectionError if none of the first kernels computes the problem right."""
        if self._where is None:
            self._where = describe_device(self._device)
        key = key_of(self._where, self._library.manifest.sha256, record)
        if key not in self._known:
            self._known = read_memory(self._memory)  # another process may have measured
        if key not in self._known:
            measurement = Measurement(self._library, self._device, operation, self._settings)
            reports = list(measurement.run(record, ranked[: self._top_k], lambda identity: None))
            found = {one["kernel"]: 1e3 * one["latency_ms"][0] for one in reports if one.get("latency_ms")}
            if not found:
                reasons = "; ".join(f"{one['kernel'][:12]}: {one['status']} {one['reason']}" for one in reports)
                what = f"none of the first {len(reports)} kernels computes {dict(record)} right"
                raise SelectionError(f"{what}: {reasons}")
            remember(self._memory, {key: found})
            self._known[key] = found
        return self._known[key]


def _record(problem: object) -> tuple[Measurable | None, Record | None]:
    """The operation whose record poses a problem, and that record; None for what no record poses."""
    for operation in OPERATIONS.values():
        if (record := operation.posed(problem)) is not None:
            return operation, record
    return None, None
