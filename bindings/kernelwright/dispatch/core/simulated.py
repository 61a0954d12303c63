"""Launches on simulated devices: the same native plan, with the memory it may access registered beforehand.

The simulator is a separate package, imported at the first launch.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.device import Device
from kernelwright.dispatch.core.errors import AbiMismatchError, DeviceError, LaunchError


class Region(NamedTuple):
    """Memory that a launch may access. ``address`` is None for an absent optional operand."""

    address: int | None
    nbytes: int
    writable: bool
    name: str


def check_library(path: object, descriptor: Any) -> None:
    """Raise AbiMismatchError for a library built before callers could choose its runtime."""
    if descriptor.contents.struct_size < native.LibraryStruct.set_runtime.offset + native.sizeof(native.SetRuntime):
        raise AbiMismatchError(f"{path} cannot run on a simulated device: its table has no set_runtime; build it again")


class SimulatedLaunch:
    """Replaces ``kw_plan_launch`` in a plan; threads may share it."""

    __slots__ = ("_arch", "_bound", "_device", "_launch", "_libraries", "_regions_of")

    def __init__(
        self, device: Device, regions_of: Callable[[Any, Any], list[Region]], libraries: Sequence[Any]
    ) -> None:
        """``libraries`` are the tables of the stages' kernels.

        ``regions_of`` returns the memory that a launch with its two structs may access.
        """
        self._device = device
        self._arch = device.archs[0]
        self._regions_of = regions_of
        self._libraries = libraries
        self._launch = native.library().kw_plan_launch
        self._bound = False

    def __call__(self, handle: Any, launch: Any, args: Any) -> int:
        """Launch and return the status. Raises LaunchError for a simulator fault; DeviceError without a simulator."""
        simulator = _simulator(self._device)
        if not self._bound:
            self._bind(simulator)
        buffers = [
            simulator.Buffer(region.address, region.nbytes, writable=region.writable, name=region.name)
            for region in self._regions_of(launch._obj, args._obj)
            if region.address is not None and region.nbytes > 0
        ]
        try:
            status: int = simulator.run(self._arch, buffers, lambda: self._launch(handle, launch, args))
        except simulator.SimulatorError as error:
            raise LaunchError(f"{self._device}: {error}") from error
        return status

    def _bind(self, simulator: Any) -> None:
        """Make the libraries use the stand-in runtime."""
        try:
            path = simulator.library_path()
        except simulator.SimulatorError as error:
            raise DeviceError(f"{self._device}: {error}") from error
        for descriptor in self._libraries:
            library = descriptor.contents
            if library.set_runtime(str(path).encode()):
                text = (library.last_error() or b"").decode(errors="replace")
                raise DeviceError(f"{self._device}: {text}")
        self._bound = True


def _simulator(device: Device) -> Any:
    """The module that implements simulated devices."""
    try:
        return importlib.import_module("kernelwright.simulator.run.device")
    except ImportError as error:
        raise DeviceError(f"{device} needs the simulator: {error}; pip install kernelwright[simulator]") from error
