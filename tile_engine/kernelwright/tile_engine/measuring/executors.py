"""Executors of launches: with arrays of this process on a CPU or in the simulator, or in the memory of a GPU."""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from kernelwright.dispatch import Device, OperationPlan
from kernelwright.tile_engine.measuring.clocks import cpu_clocks
from kernelwright.tile_engine.measuring.gpu import CudaDevice, Gpu, HipDevice
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.measuring.timing import Launch, in_turns, repeat_for, timed_calls
from kernelwright.tile_engine.operation import Measurable, Operands

Begin = Callable[[str], None]


class Executor(Protocol):
    """Launches plans on sets of operands."""

    def launches(self, plan: OperationPlan[Any]) -> list[Launch]:
        """One launch per set of operands."""

    def poison(self) -> None:
        """Poison the output of each set in the memory that launches write."""

    def fetch(self) -> None:
        """Wait for launches and copy their results into ``outs`` of each set."""

    def instructions(self) -> Mapping[str, int] | None:
        """Instructions executed by the last launch, by class; None if nothing counts them."""

    def seconds(self, launches: Mapping[str, Sequence[Launch]], begin: Begin) -> dict[str, list[float]]:
        """Seconds of a launch in each round, by name; empty for a device whose times mean nothing."""

    def clocks(self) -> str:
        """Clocks in MHz, such as ``sm=1980;memory=2619``; empty if unknown."""


def executor(device: Device, operation: Measurable, sets: Sequence[Operands], settings: Settings) -> Executor:
    """The executor for a device. Raises DeviceError for a missing GPU."""
    if device.kind in ("cuda", "hip"):
        gpu = CudaDevice(device.ordinal) if device.kind == "cuda" else HipDevice(device.ordinal)
        return GpuExecutor(gpu, operation, sets, settings)
    return (SimulatedExecutor if device.simulated else CpuExecutor)(operation, sets, settings)


class CpuExecutor:
    """See :class:`Executor`."""

    def __init__(self, operation: Measurable, sets: Sequence[Operands], settings: Settings) -> None:
        """Launches will write the sets' own ``outs``."""
        self._operation, self._sets, self._settings = operation, sets, settings

    def launches(self, plan: OperationPlan[Any]) -> list[Launch]:
        """One bound plan per set."""
        return [self._operation.bind(plan, one) for one in self._sets]

    def poison(self) -> None:
        """Poison the outputs in place."""
        for one in self._sets:
            one.poison()

    def fetch(self) -> None:
        """Do nothing: a launch has ended when it returns."""

    def instructions(self) -> Mapping[str, int] | None:
        """Return None: a CPU counts no instructions."""
        return None

    def seconds(self, launches: Mapping[str, Sequence[Launch]], begin: Begin) -> dict[str, list[float]]:
        """Time by the clock of the calling thread."""
        return timed_calls(launches, self._settings, begin)

    def clocks(self) -> str:
        """The highest clock of the cores."""
        return cpu_clocks()


class SimulatedExecutor(CpuExecutor):
    """See :class:`Executor`. Results are simulated, and times mean nothing."""

    def instructions(self) -> Mapping[str, int]:
        """Counts by class, and over all classes."""
        counts: Counter[str] = Counter()
        reports = importlib.import_module("kernelwright.simulator").last_reports()
        for report in reports:
            counts.update(report.counts)
        return {**counts, "all": sum(report.instructions for report in reports)}

    def seconds(self, launches: Mapping[str, Sequence[Launch]], begin: Begin) -> dict[str, list[float]]:
        """Return no times: they mean nothing."""
        return {name: [] for name in launches}

    def clocks(self) -> str:
        """Return no clocks: times mean nothing."""
        return ""


class GpuExecutor:
    """See :class:`Executor`. Launches are captured in graphs, so that their times include no host time."""

    def __init__(self, device: Gpu, operation: Measurable, sets: Sequence[Operands], settings: Settings) -> None:
        """Copy the inputs of each set to the device."""
        self._device, self._operation, self._sets, self._settings = device, operation, sets, settings
        self._inputs = [[self._uploaded(array) for array in one.inputs] for one in sets]
        self._outs = [[device.allocate(array.nbytes) for array in one.outs] for one in sets]
        self._workspace, self._workspace_bytes = 0, 0

    def _uploaded(self, array: Any) -> int:
        address = self._device.allocate(array.nbytes)
        self._device.upload(array, address)
        return address

    def launches(self, plan: OperationPlan[Any]) -> list[Launch]:
        """Plans with device addresses. All share one workspace, because launches run in sequence."""
        if plan.workspace_bytes > self._workspace_bytes:
            self._workspace_bytes = plan.workspace_bytes
            self._workspace = self._device.allocate(plan.workspace_bytes)
        bind, stream = self._operation.bind_addresses, self._device.stream
        return [
            bind(plan, inputs, outs, stream, self._workspace)
            for inputs, outs in zip(self._inputs, self._outs, strict=True)
        ]

    def poison(self) -> None:
        """Copy poison to the device."""
        for one, addresses in zip(self._sets, self._outs, strict=True):
            one.poison()
            for array, address in zip(one.outs, addresses, strict=True):
                self._device.upload(array, address)

    def fetch(self) -> None:
        """Copy the results back."""
        for one, addresses in zip(self._sets, self._outs, strict=True):
            for array, address in zip(one.outs, addresses, strict=True):
                self._device.download(address, array)

    def instructions(self) -> Mapping[str, int] | None:
        """Return None: a GPU counts no instructions."""
        return None

    def seconds(self, launches: Mapping[str, Sequence[Launch]], begin: Begin) -> dict[str, list[float]]:
        """Time by events around the replay of a graph."""
        replays: dict[str, Callable[[], float]] = {}
        for name, each in launches.items():
            begin(name)
            once = self._graph(each, max(len(each), 1))
            repeat = repeat_for(max(once(), once()) / max(len(each), 1), self._settings)
            whole = self._graph(each, repeat)
            for _ in range(max(1, math.ceil(self._settings.warmup / repeat))):
                whole()
            replays[name] = lambda whole=whole, repeat=repeat: whole() / repeat  # type: ignore[misc]
        return in_turns(replays, self._settings, begin)

    def clocks(self) -> str:
        """Clocks of the GPU, as reported by its management library or its kernel driver."""
        return self._device.clocks()

    def _graph(self, each: Sequence[Launch], count: int) -> Callable[[], float]:
        def work() -> None:
            for number in range(count):
                each[number % len(each)]()

        return self._device.capture(work)
