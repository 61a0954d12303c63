"""The executor of GPUs on a driver that is a Python object: its memory is this process's, its clock counts launches."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.dispatch import DeviceError, OperationPlan
from kernelwright.tile_engine.measuring.clocks import hip_clocks
from kernelwright.tile_engine.measuring.executors import GpuExecutor
from kernelwright.tile_engine.measuring.gpu import CudaDevice, HipDevice, load_runtime
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


SAME = {
    "hipMalloc": "cuMemAlloc_v2", "hipMemcpyHtoD": "cuMemcpyHtoD_v2", "hipMemcpyDtoH": "cuMemcpyDtoH_v2",
    "hipEventCreateWithFlags": "cuEventCreate", "hipEventRecord": "cuEventRecord",
    "hipEventElapsedTime": "cuEventElapsedTime", "hipStreamBeginCapture": "cuStreamBeginCapture_v2",
    "hipStreamEndCapture": "cuStreamEndCapture", "hipGraphInstantiateWithFlags": "cuGraphInstantiateWithFlags",
    "hipGraphLaunch": "cuGraphLaunch",
}  # fmt: skip


class Runtime(Driver):
    """Those of libamdhip64, which do the same by other names."""

    def __getattr__(self, name: str) -> Callable[..., int]:
        assert name.startswith("hip"), f"{name} is no function of the HIP runtime"
        known = super().__getattr__(SAME.get(name, name))

        def call(*arguments: Any) -> int:
            return self.status.get(name, 0) or known(*arguments)

        return call


KINDS = {"cuda": (Driver, CudaDevice), "hip": (Runtime, HipDevice)}
of_each_kind = pytest.mark.parametrize("kind", KINDS)


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


def made(kind: str, sets: int = 2, **fields: Any) -> tuple[Driver, GpuExecutor, list[Any]]:
    driver_type, device = KINDS[kind]
    driver = driver_type()
    operands = [GEMM.operands(GEMM.read({"m": 4, "n": 3, "k": 5, "dtype": "fp32"}), seed) for seed in range(sets)]
    operation: Any = Operation(driver, operands)
    return driver, GpuExecutor(device(0, driver), operation, operands, Settings(**fields)), operands


@of_each_kind
def test_results_come_back_from_the_device_and_poison_goes_there(kind: str) -> None:
    _, on_device, operands = made(kind)
    plan: Any = Plan()
    on_device.poison()
    launches = on_device.launches(plan)
    on_device.fetch()
    assert all(one.error() == np.inf for one in operands)  # nothing has been launched
    for launch in launches:
        launch()
    on_device.fetch()
    assert all(one.error() == 0 for one in operands)


@of_each_kind
def test_a_launch_in_a_graph_is_timed_by_events(kind: str) -> None:
    driver, on_device, _ = made(kind, repeat=7, rounds=3, warm_s=0)
    plan: Any = Plan()
    begun: list[str] = []
    seconds = on_device.seconds({"k": on_device.launches(plan)}, begun.append)
    assert seconds == {"k": [pytest.approx(1e-3)] * 3}
    assert driver.graphs == [2, 7]  # one launch of each set to estimate, then a round
    assert begun == ["k"] * 4


def test_an_error_of_the_driver_names_the_call() -> None:
    driver, runtime = Driver(), Runtime()
    driver.status["cuMemAlloc_v2"] = runtime.status["hipMalloc"] = 2
    with pytest.raises(DeviceError, match="cuMemAlloc_v2 failed with CUDA error 2"):
        CudaDevice(0, driver).allocate(1)
    with pytest.raises(DeviceError, match="hipMalloc failed with HIP error 2"):
        HipDevice(0, runtime).allocate(1)
    runtime.status["hipSetDevice"] = 101
    with pytest.raises(DeviceError, match="hipSetDevice failed with HIP error 101"):
        HipDevice(3, runtime)


def test_a_missing_runtime_says_what_was_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELWRIGHT_HIP_LIBRARY", "/nonexistent/libamdhip64.so")
    with pytest.raises(
        DeviceError, match=r"cannot be loaded: /nonexistent/libamdhip64.so.*set KERNELWRIGHT_HIP_LIBRARY"
    ):
        load_runtime()


def test_clocks_of_an_amd_gpu_are_those_of_its_kernel_driver(tmp_path: Path) -> None:
    class Placed:
        def hipDeviceGetPCIBusId(self, place: Any, size: int, ordinal: int) -> int:
            place.value = b"0000:C1:00.0"
            return 0 if ordinal == 0 else 101

    folder = tmp_path / "0000:c1:00.0"
    folder.mkdir()
    (folder / "pp_dpm_sclk").write_text("0: 132Mhz\n1: 2100Mhz *\n")
    (folder / "pp_dpm_mclk").write_text("0: 900Mhz\n1: 1300Mhz *\n")
    assert hip_clocks(Placed(), 0, tmp_path) == "sm=2100;memory=1300"
    assert hip_clocks(Placed(), 1, tmp_path) == "" == hip_clocks(Placed(), 0, tmp_path / "none")
