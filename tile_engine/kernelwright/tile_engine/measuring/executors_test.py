"""The CUDA executor on a driver that is a Python object: its memory is this process's, its clock counts launches."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import Device, DeviceError, OperationPlan
from kernelwright.tile_engine.measuring.cuda import CudaDevice
from kernelwright.tile_engine.measuring.executors import CudaExecutor, executor
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.registry import measurable

GEMM = measurable("gemm")


class Driver:
    """The functions of libcuda that the executor calls; a launch takes a millisecond of its time."""

    def __init__(self) -> None:
        self.memory: list[Any] = []
        self.calls: list[str] = []
        self.graphs: list[int] = []  # launches in each
        self.capturing: int | None = None
        self.now = 0.0
        self.events: dict[int, float] = {}
        self.status: dict[str, int] = {}  # of calls that fail

    def launch(self) -> None:
        """What a kernel's launch does to a stream."""
        if self.capturing is None:
            self.now += 1
        else:
            self.capturing += 1

    def __getattr__(self, name: str) -> Callable[..., int]:
        def call(*arguments: Any) -> int:
            self.calls.append(name)
            known = getattr(type(self), f"_{name}", None)
            return self.status.get(name, 0) or int((known(self, *arguments) if known else 0) or 0)

        return call

    def _cuMemAlloc_v2(self, address: Any, nbytes: Any) -> None:
        self.memory.append(ctypes.create_string_buffer(nbytes.value))
        address._obj.value = ctypes.addressof(self.memory[-1])

    def _cuMemcpyHtoD_v2(self, device: Any, host: Any, nbytes: Any) -> None:
        ctypes.memmove(device.value, host, nbytes.value)

    def _cuMemcpyDtoH_v2(self, host: Any, device: Any, nbytes: Any) -> None:
        ctypes.memmove(host, device.value, nbytes.value)

    def _cuEventCreate(self, event: Any, flags: int) -> None:
        event._obj.value = len(self.events) + 1
        self.events[event._obj.value] = 0.0

    def _cuEventRecord(self, event: Any, stream: Any) -> None:
        self.events[event.value] = self.now

    def _cuEventElapsedTime(self, milliseconds: Any, start: Any, end: Any) -> None:
        milliseconds._obj.value = self.events[end.value] - self.events[start.value]

    def _cuStreamBeginCapture_v2(self, stream: Any, mode: int) -> None:
        self.capturing = 0

    def _cuStreamEndCapture(self, stream: Any, graph: Any) -> None:
        assert self.capturing is not None
        self.graphs.append(self.capturing)
        graph._obj.value = len(self.graphs)
        self.capturing = None

    def _cuGraphInstantiateWithFlags(self, executable: Any, graph: Any, flags: Any) -> None:
        executable._obj.value = graph.value

    def _cuGraphLaunch(self, executable: Any, stream: Any) -> None:
        self.now += self.graphs[executable.value - 1]


class Plan:
    """Stands for a plan of ``operation`` below; it writes the product when it is launched outside of a capture."""

    workspace_bytes = 1000


class Operation:
    """GEMM whose launches the driver counts."""

    def __init__(self, driver: Driver, sets: Any) -> None:
        self._driver, self._sets = driver, iter(sets)

    def bind_addresses(
        self, plan: OperationPlan[Any], inputs: list[int], outs: list[int], stream: int, workspace: int
    ) -> Callable[[], None]:
        one = next(self._sets)
        a, b = one.inputs
        right = (a.astype(np.float64) @ b.astype(np.float64)).astype(one.outs[0].dtype)
        assert ctypes.string_at(inputs[0], a.nbytes) == a.tobytes("A") and workspace

        def launch() -> None:
            self._driver.launch()
            ctypes.memmove(outs[0], right.ctypes.data, right.nbytes)

        return launch


def made(sets: int = 2, **fields: Any) -> tuple[Driver, CudaExecutor, list[Any]]:
    driver = Driver()
    operands = [GEMM.operands(GEMM.read({"m": 4, "n": 3, "k": 5, "dtype": "fp32"}), seed) for seed in range(sets)]
    operation: Any = Operation(driver, operands)
    return driver, CudaExecutor(CudaDevice(0, driver), operation, operands, Settings(**fields)), operands


def test_results_come_back_from_the_device_and_poison_goes_there() -> None:
    _, on_device, operands = made()
    plan: Any = Plan()
    on_device.poison()
    launches = on_device.launches(plan)
    on_device.fetch()
    assert all(one.error() == np.inf for one in operands)  # nothing has been launched
    for launch in launches:
        launch()
    on_device.fetch()
    assert all(one.error() == 0 for one in operands)


def test_a_launch_in_a_graph_is_timed_by_events() -> None:
    driver, on_device, _ = made(repeat=7, rounds=3, warm_s=0)
    plan: Any = Plan()
    begun: list[str] = []
    seconds = on_device.seconds({"k": on_device.launches(plan)}, begun.append)
    assert seconds == {"k": [pytest.approx(1e-3)] * 3}
    assert driver.graphs == [2, 7]  # one launch of each set to estimate, then a round
    assert begun == ["k"] * 4


def test_an_error_of_the_driver_names_the_call() -> None:
    driver = Driver()
    driver.status["cuMemAlloc_v2"] = 2
    with pytest.raises(DeviceError, match="cuMemAlloc_v2 failed with CUDA error 2"):
        CudaDevice(0, driver).allocate(1)


def test_amd_gpus_are_refused() -> None:
    with pytest.raises(ValueError, match="cannot time kernels on hip:0; allowed: cpu, cuda:N, sim:ARCH"):
        executor(Device("hip:0"), GEMM, [], Settings())
