"""Measure kernels of one library on one problem, in this process."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from kernelwright.dispatch import Device, Dispatcher, KernelLibrary, KernelwrightError, NoKernelError
from kernelwright.tile_engine.measuring.executors import Executor, executor
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.measuring.timing import Launch
from kernelwright.tile_engine.operation import Measurable, Operands, Record

Report = dict[str, Any]
OK, WRONG, REFUSED, FAILED = "ok", "wrong", "refused", "failed"


Pair = tuple[str, int]
"""The identity of a kernel, and the value of what the problem leaves open; 0 lets the dispatcher choose."""


class Measurement:
    """Measures kernels of one or several libraries, on problems of one operation, on one device."""

    def __init__(
        self,
        library: KernelLibrary | Sequence[KernelLibrary],
        device: Device,
        operation: Measurable,
        settings: Settings,
    ) -> None:
        """``settings`` state how kernels are checked and timed."""
        self._library, self._device, self._operation, self._settings = library, device, operation, settings

    def run(self, record: Record, kernels: Sequence[str], begin: Callable[[str], None]) -> Iterator[Report]:
        """Run :meth:`run_pairs` for kernels by identity, with the dispatcher's choices for each."""
        return self.run_pairs(record, [(identity, 0) for identity in kernels], begin)

    def run_pairs(self, record: Record, pairs: Sequence[Pair], begin: Callable[[str], None]) -> Iterator[Report]:
        """Yield one report per pair; ``begin`` is told which kernel is about to be launched.

        Reports of correct kernels come last, because they are timed in turns. Raises ValueError for a device that the
        engine cannot time.
        """
        count = 1 if self._device.simulated else self._settings.rotating_buffers
        sets = [self._operation.operands(record, self._settings.seed + number) for number in range(count)]
        on_device = executor(self._device, self._operation, sets, self._settings)
        timed: dict[str, list[Launch]] = {}
        reports: dict[str, Report] = {}
        for identity, value in pairs:
            begin(identity)
            report, launches = self._check(record, (identity, value), sets, on_device, begin)
            if launches:
                name = label((identity, value))
                timed[name], reports[name] = launches, report
            else:
                yield report
        samples = on_device.seconds(timed, lambda name: begin(reports[name]["kernel"]))
        clocks = on_device.clocks()
        for name, seconds in samples.items():
            times = [statistics.median(seconds), min(seconds), max(seconds)] if seconds else None
            latency = times and [1e3 * value for value in times]
            yield {**reports[name], "latency_ms": latency, "clocks": clocks}

    def _check(
        self, record: Record, pair: Pair, sets: Sequence[Operands], on_device: Executor, begin: Callable[[str], None]
    ) -> tuple[Report, list[Launch]]:
        """Result of the first launch on each set, and the launches if the kernel may be timed."""
        identity, value = pair
        report: Report = {"kernel": identity, "status": OK, "reason": "", "error": None, "non_zero": None}
        report |= {"value": value} if value else {}
        dispatcher = Dispatcher(self._library, device=self._device, selection=identity)
        try:
            problem = self._operation.problem(record)
            plan = dispatcher.plan(self._operation.with_value(problem, value) if value else problem)
        except NoKernelError as error:
            return {**report, "status": REFUSED, "reason": error.reason}, []
        report["choices"] = plan.choices
        report["stages"] = [one.kernel.identity for one in plan.stages if one.kernel.identity != identity]
        try:
            on_device.poison()
            launches = on_device.launches(plan)
            for launch in launches:
                launch()
            on_device.fetch()
        except KernelwrightError as error:
            return {**report, "status": FAILED, "reason": str(error)}, []
        begin(identity)  # comparison takes time of its own
        report["instructions"] = on_device.instructions()
        report["non_zero"] = sum(int(np.count_nonzero(out.astype(np.float32))) for out in sets[0].outs)
        if self._settings.verify:
            report["error"] = max(one.error() for one in sets)
            if not report["error"] <= 1:
                return {**report, "status": WRONG, "reason": "an element is beyond its error bound"}, []
        return report, launches


def label(pair: Pair) -> str:
    """A pair as one word: the identity, followed by a colon and the value if the dispatcher does not choose it."""
    identity, value = pair
    return f"{identity}:{value}" if value else identity
