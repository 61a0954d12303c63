"""Measures kernels of one library on one problem, in this process."""

from __future__ import annotations

import importlib
import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kernelwright.dispatch import Device, Dispatcher, KernelLibrary, KernelwrightError
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.measuring.timing import Launch, seconds_of
from kernelwright.tile_engine.operation import Measurable, Operands, Record

Report = dict[str, Any]
OK, WRONG, REFUSED, FAILED = "ok", "wrong", "refused", "failed"


class Measurement:
    """Kernels of a library on one problem on ``device``, which is ``cpu`` or ``sim:ARCH``."""

    def __init__(self, library: KernelLibrary, device: Device, operation: Measurable, settings: Settings) -> None:
        """ValueError for a GPU: its times need events and graphs, which this engine does not drive yet."""
        if device.kind not in ("cpu", "sim"):
            raise ValueError(f"tile-engine bench cannot time kernels on {device}; allowed: cpu, sim:ARCH")
        self._library, self._device, self._operation, self._settings = library, device, operation, settings

    def run(self, record: Record, kernels: Sequence[str], begin: Callable[[str], None]) -> Iterator[Report]:
        """One report for each kernel, by identity; ``begin`` is told which kernel is about to be launched.

        Reports of right kernels come last, because they are timed in turns.
        """
        sets = 1 if self._device.simulated else self._settings.rotating_buffers
        operands = [self._operation.operands(record, self._settings.seed + number) for number in range(sets)]
        timed: dict[str, list[Launch]] = {}
        reports: dict[str, Report] = {}
        for identity in kernels:
            begin(identity)
            report, launches = self._check(record, identity, operands)
            if launches and not self._device.simulated:
                timed[identity], reports[identity] = launches, report
            else:
                yield report
        for identity, seconds in seconds_of(timed, self._settings, begin).items():
            ordered = sorted(seconds)
            milliseconds = [1e3 * value for value in (statistics.median(ordered), ordered[0], ordered[-1])]
            yield {**reports[identity], "latency_ms": milliseconds}

    def _check(self, record: Record, identity: str, operands: Sequence[Operands]) -> tuple[Report, list[Launch]]:
        """What the first launch of each set gave, and the launches if the kernel may be timed."""
        report: Report = {"kernel": identity, "status": OK, "reason": "", "error": None, "non_zero": None}
        dispatcher = Dispatcher(self._library, device=self._device, selection=identity)
        if reason := self._operation.serves(dispatcher, record):
            return {**report, "status": REFUSED, "reason": reason}, []
        try:
            plan = dispatcher.plan(self._operation.problem(record))
            launches = [self._operation.bind(plan, one) for one in operands]
            for launch in launches:
                launch()
        except KernelwrightError as error:
            return {**report, "status": FAILED, "reason": str(error)}, []
        report["error"] = max(map(_error, operands)) if self._settings.verify else None
        report["non_zero"] = int(np.count_nonzero(operands[0].out.astype(np.float32)))
        if self._device.simulated:
            report["instructions"] = _instructions()
        if self._settings.verify and not report["error"] <= 1:
            return {**report, "status": WRONG, "reason": "an element is beyond its error bound"}, []
        return report, launches


def _error(operands: Operands) -> float:
    """The largest error of an element as a share of its bound; infinite for an element that was not written."""
    off = np.abs(operands.out.astype(np.float64) - operands.exact)
    share = np.where(off == 0, 0.0, off / np.maximum(operands.bound, np.finfo(np.float64).tiny))
    return float(np.nan_to_num(share, nan=np.inf).max(initial=0.0))


def _instructions() -> dict[str, int]:
    """Instructions of the last launch by class, and of all classes."""
    reports = importlib.import_module("kernelwright.simulator").last_reports()
    counts: Counter[str] = Counter()
    for report in reports:
        counts.update(report.counts)
    return {**counts, "all": sum(report.instructions for report in reports)}
