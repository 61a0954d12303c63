"""Where launches happen: arrays of this process on a CPU or in the simulator, and memory of a GPU."""

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
        """A launch for each set."""

    def poison(self) -> None:
        """Poison the output of each set, where launches write it."""

    def fetch(self) -> None:
        """Wait for launches, and bring what they wrote into ``outs`` of each set."""

    def instructions(self) -> Mapping[str, int] | None:
        """What the last launch executed, by class; None where nothing counts."""

    def seconds(self, launches: Mapping[str, Sequence[Launch]], begin: Begin) -> dict[str, list[float]]:
        """Seconds of a launch in each round, by name; none for a device whose times mean nothing."""

    def clocks(self) -> str:
        """Clocks in MHz, such as ``sm=1980;memory=2619``; empty where nobody says."""


def executor(device: Device, operation: Measurable, sets: Sequence[Operands], settings: Settings) -> Executor:
    """The executor of a device. DeviceError for a GPU that is missing."""
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
        """Bound plans."""
        return [self._operation.bind(plan, one) for one in self._sets]

    def poison(self) -> None:
        """In place."""
        for one in self._sets:
            one.poison()

    def fetch(self) -> None:
        """Nothing to do: a launch has ended when it returns."""

    def instructions(self) -> Mapping[str, int] | None:
        """A CPU counts none."""
        return None

    def seconds(self, launches: Mapping[str, Sequence[Launch]], begin: Begin) -> dict[str, list[float]]:
        """By the clock of the calling thread."""
        return timed_calls(launches, self._settings, begin)

    def clocks(self) -> str:
        """The highest of the cores."""
        return cpu_clocks()


class SimulatedExecutor(CpuExecutor):
    """See :class:`Executor`. Its results are simulated, and its times mean nothing."""

    def instructions(self) -> Mapping[str, int]:
        """By class, and of all classes."""
        counts: Counter[str] = Counter()
        reports = importlib.import_module("kernelwright.simulator").last_reports()
        for report in reports:
            counts.update(report.counts)
        return {**counts, "all": sum(report.instructions for report in reports)}

    def seconds(self, launches: Mapping[str, Sequence[Launch]], begin: Begin) -> dict[str, list[float]]:
        """None."""
        return {name: [] for name in launches}

    def clocks(self) -> str:
        """None: times mean nothing."""
        return ""


class GpuExecutor:
    """See :class:`Executor`. Launches are captured in graphs, so that no time of the host is in theirs."""

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
        """Plans with addresses of the device. All share one workspace, because launches follow each other."""
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
        """Copy back what was written."""
        for one, addresses in zip(self._sets, self._outs, strict=True):
            for array, address in zip(one.outs, addresses, strict=True):
                self._device.download(address, array)

    def instructions(self) -> Mapping[str, int] | None:
        """A GPU counts none."""
        return None

    def seconds(self, launches: Mapping[str, Sequence[Launch]], begin: Begin) -> dict[str, list[float]]:
        """By events around the replay of a graph."""
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
        """Clocks of the GPU, as its management library or its kernel driver says."""
        return self._device.clocks()

    def _graph(self, each: Sequence[Launch], count: int) -> Callable[[], float]:
        def work() -> None:
            for number in range(count):
                each[number % len(each)]()

        return self._device.capture(work)
