"""Launches on simulated devices: the same native plan, between a registration of its memory and a look at what ran.

The simulator is a package of its own, imported at the first launch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from kernelwright.dispatch import native
from kernelwright.dispatch.device import Device
from kernelwright.dispatch.errors import AbiMismatchError, DeviceError, LaunchError


def check_library(path: object, descriptor: Any) -> None:
    """AbiMismatchError for a library that was built before a caller could choose its runtime."""
    if descriptor.contents.struct_size < native.LibraryStruct.set_runtime.offset + native.sizeof(native.SetRuntime):
        raise AbiMismatchError(f"{path} cannot run on a simulated device: its table has no set_runtime; build it again")


class SimulatedLaunch:
    """Stands in for ``kw_plan_launch`` in a plan; threads may share it."""

    __slots__ = ("_arch", "_bound", "_device", "_launch", "_library", "_memory_of")

    def __init__(
        self, device: Device, memory_of: Callable[[Any], list[tuple[int | None, int, bool, str]]], library: Any
    ) -> None:
        """``library`` is the table of the library that the plan's kernel is from.

        ``memory_of`` says what a launch with some arguments may touch: address, bytes, whether it may write, name.
        """
        self._device = device
        self._arch = device.archs[0]
        self._memory_of = memory_of
        self._library = library
        self._launch = native.library().kw_plan_launch
        self._bound = False

    def __call__(self, handle: Any, reference: Any) -> int:
        """The status of the launch. LaunchError from the simulator's fault; DeviceError without a simulator."""
        simulator = _simulator(self._device)
        if not self._bound:
            self._bind(simulator)
        buffers = self._buffers(simulator, reference._obj)
        try:
            status: int = simulator.run(self._arch, buffers, lambda: self._launch(handle, reference))
        except simulator.SimulatorError as error:
            raise LaunchError(f"{self._device}: {error}") from error
        return status

    def _bind(self, simulator: Any) -> None:
        """Have the library use the stand-in runtime."""
        try:
            path = simulator.library_path()
        except simulator.SimulatorError as error:
            raise DeviceError(f"{self._device}: {error}") from error
        library = self._library.contents
        if library.set_runtime(str(path).encode()):
            text = (library.last_error() or b"").decode(errors="replace")
            raise DeviceError(f"{self._device}: {text}")
        self._bound = True

    def _buffers(self, simulator: Any, args: Any) -> list[Any]:
        return [
            simulator.Buffer(address, nbytes, writable=writable, name=name)
            for address, nbytes, writable, name in self._memory_of(args)
            if address is not None and nbytes > 0
        ]


def _simulator(device: Device) -> Any:
    """The module behind simulated devices."""
    try:
        return importlib.import_module("kernelwright.simulator.run.device")
    except ImportError as error:
        raise DeviceError(f"{device} needs the simulator: {error}; pip install kernelwright[simulator]") from error
