"""Dispatching to simulated devices, with a stand-in for the simulator: what reaches it, and what its errors become."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

from kernelwright.dispatch import (
    AbiMismatchError,
    ArchMismatchError,
    ArrayError,
    DeviceError,
    Dispatcher,
    GemmProblem,
    KernelLibrary,
    LaunchError,
)
from kernelwright.dispatch.testdata import mocks


class Buffer(NamedTuple):
    address: int
    nbytes: int
    writable: bool = True
    name: str = ""


class Simulator:
    """The interface of kernelwright.simulator.run.device, without a simulator: the mock kernels run on this machine."""

    class SimulatorError(Exception):
        """What simulators raise."""

    def __init__(self) -> None:
        self.Buffer = Buffer
        self.path: Path | None = Path("/stand/in.so")
        self.launches: list[tuple[str, Sequence[Buffer]]] = []
        self.failure: Exception | None = None

    def library_path(self) -> Path:
        if self.path is None:
            raise self.SimulatorError("the stand-in is missing")
        return self.path

    def run(self, arch: str, buffers: Sequence[Buffer], launch: Callable[[], int]) -> int:
        self.launches.append((arch, buffers))
        status = launch()
        if self.failure is not None:
            raise self.failure
        return status


@pytest.fixture
def simulator(monkeypatch: pytest.MonkeyPatch) -> Simulator:
    fake = Simulator()
    monkeypatch.setitem(sys.modules, "kernelwright.simulator.run.device", fake)
    return fake


ANY_DEVICE = "MOCK_ANY_DEVICE"


def hip_library(folder: Path, *macros: str, arch: str = "gfx942", **names: str) -> KernelLibrary:
    mocks.native_library()
    return KernelLibrary.load(mocks.write_library(folder, ANY_DEVICE, *macros, arch=arch, backend="ck_tile", **names))


@pytest.fixture
def dispatcher(tmp_path: Path, simulator: Simulator) -> Dispatcher:
    return Dispatcher(hip_library(tmp_path / "library"), device="sim:gfx942")


def whole(*shape: int, kind: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).integers(-3, 4, shape).astype(kind)


def test_arrays_of_this_machine_are_multiplied(dispatcher: Dispatcher, simulator: Simulator) -> None:
    a, b = whole(5, 7), whole(7, 6)
    result = dispatcher.gemm(a, b)
    assert np.array_equal(result, a @ b)
    assert dispatcher.gemm(a, b, out=result) is result  # the quick way of repeated calls
    assert [arch for arch, _ in simulator.launches] == ["gfx942", "gfx942"]
    plan = dispatcher.plan(GemmProblem(5, 6, 7, layout="rrr"))
    assert "simulated on sim:gfx942" in repr(plan) and plan.device == "sim:gfx942"
    plan.bind(a, b, out=result)()
    plan(a.ctypes.data, b.ctypes.data, out=result.ctypes.data)
    assert len(simulator.launches) == 4


def test_exactly_the_operands_are_registered(dispatcher: Dispatcher, simulator: Simulator) -> None:
    a, b, out = whole(5, 16)[:, :7], whole(7, 6), np.zeros((5, 6), np.float32)
    dispatcher.gemm(a, b, out=out)  # this mock kernel wants a workspace
    ((_, buffers),) = simulator.launches
    assert [tuple(buffer) for buffer in buffers[:3]] == [
        (a.ctypes.data, (4 * 16 + 7) * 4, False, "A"),
        (b.ctypes.data, b.nbytes, False, "B"),
        (out.ctypes.data, out.nbytes, True, "D"),
    ]
    assert [tuple(buffer[1:]) for buffer in buffers[3:]] == [(4096, True, "workspace")]
    assert buffers[3].address % 256 == 0


def test_c_is_read_only_unless_it_is_d(dispatcher: Dispatcher, simulator: Simulator) -> None:
    a, b, c, out = whole(5, 7), whole(6, 7).T, whole(5, 6), np.zeros((5, 6), np.float32)
    expected = a @ b + c
    dispatcher.gemm(a, b, c, out, beta=1.0)
    dispatcher.gemm(a, b, c, c, beta=1.0)
    assert np.array_equal(out, expected) and np.array_equal(c, expected)
    names = [[(buffer.name, buffer.writable) for buffer in buffers] for _, buffers in simulator.launches]
    assert names == [[("A", False), ("B", False), ("D", True), ("C", False)], [("A", False), ("B", False), ("D", True)]]


def test_an_empty_problem_registers_nothing_empty(dispatcher: Dispatcher, simulator: Simulator) -> None:
    assert dispatcher.gemm(whole(0, 7), whole(6, 7).T).shape == (0, 6)
    assert [buffer.name for buffer in simulator.launches[0][1]] == ["B"]


def test_a_fault_is_a_launch_error(dispatcher: Dispatcher, simulator: Simulator) -> None:
    simulator.failure = simulator.SimulatorError("gemm: workgroup (0, 0, 0), wave 1, pc 0x40: out of bounds")
    with pytest.raises(LaunchError, match=r"sim:gfx942: gemm: workgroup .* pc 0x40") as caught:
        dispatcher.gemm(whole(5, 7), whole(7, 6))
    assert caught.value.__cause__ is simulator.failure
    simulator.failure = ZeroDivisionError("an error of the simulator itself stays what it is")
    with pytest.raises(ZeroDivisionError):
        dispatcher.gemm(whole(5, 7), whole(7, 6))


def test_refusals_of_the_library_stay_what_they_are(dispatcher: Dispatcher) -> None:
    with pytest.raises(LaunchError, match="mock runtime said no"):
        dispatcher.gemm(whole(5, 7, kind=np.int8), whole(6, 7, kind=np.int8).T)


def test_without_a_simulator_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kernelwright.simulator.run.device", None)
    dispatcher = Dispatcher(hip_library(tmp_path / "library"), device="sim:gfx942")
    problem = GemmProblem(5, 6, 7)
    assert dispatcher.explain(problem).chosen is not None  # planning needs none
    with pytest.raises(DeviceError, match=r"sim:gfx942 needs the simulator.*install kernelwright\[simulator\]"):
        dispatcher.gemm(whole(5, 7), whole(7, 6))


def test_a_missing_runtime_is_a_device_error(dispatcher: Dispatcher, simulator: Simulator) -> None:
    simulator.path = None
    with pytest.raises(DeviceError, match="sim:gfx942: the stand-in is missing"):
        dispatcher.gemm(whole(5, 7), whole(7, 6))


def test_a_library_has_one_runtime(tmp_path: Path, simulator: Simulator) -> None:
    library = hip_library(tmp_path / "library")
    assert library.descriptor.contents.set_runtime(b"/some/libamdhip64.so.7") == 0
    with pytest.raises(DeviceError, match=r"uses /some/libamdhip64\.so\.7 already"):
        Dispatcher(library, device="sim:gfx942").gemm(whole(5, 7), whole(7, 6))


def test_libraries_that_cannot_be_simulated_are_refused(tmp_path: Path, simulator: Simulator) -> None:
    with pytest.raises(AbiMismatchError, match="no set_runtime; build it again"):
        Dispatcher(hip_library(tmp_path / "old", "MOCK_OLD", seed="b"), device="sim:gfx942")
    with pytest.raises(ArchMismatchError, match="gfx942"):
        Dispatcher(hip_library(tmp_path / "other"), device="sim:gfx950")
    cpu = KernelLibrary.load(mocks.write_library(tmp_path / "cpu"))
    with pytest.raises(ArchMismatchError, match="runs on cpu; device is sim:gfx942"):
        Dispatcher(cpu, device="sim:gfx942")
    with pytest.raises(ArrayError, match="allowed by this dispatcher: cpu"):
        Dispatcher(hip_library(tmp_path / "third"), device="sim:gfx942").gemm(OnGpu(), OnGpu())


class OnGpu:
    """An array of a GPU."""

    __cuda_array_interface__ = {"shape": (4, 4), "typestr": "<f4", "data": (4096, False), "version": 3}  # noqa: RUF012


@pytest.mark.parametrize(
    ("arch", "fp8_format", "right", "wrong"),
    [
        ("gfx942", "KW_FP8_FNUZ", ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e4m3fn),
        ("gfx1201", "KW_FP8_OCP", ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz),
    ],
)
def test_eight_bit_floats_have_the_format_of_the_architecture(
    tmp_path: Path, simulator: Simulator, arch: str, fp8_format: str, right: Any, wrong: Any
) -> None:
    macros = ("MOCK_NARROW=KW_FP8", f"MOCK_FP8_FORMAT={fp8_format}")
    library = hip_library(tmp_path / "library", *macros, arch=arch, seed="c")
    assert library.fp8_fnuz == (fp8_format == "KW_FP8_FNUZ")
    dispatcher = Dispatcher(library, device=f"sim:{arch}")
    out = np.zeros((5, 6), np.float16)
    dispatcher.gemm(whole(5, 7, kind=right), whole(7, 6, kind=right), out=out)
    assert len(simulator.launches) == 1
    with pytest.raises(ArchMismatchError, match=f"allowed on {arch}"):
        dispatcher.gemm(whole(5, 7, kind=wrong), whole(7, 6, kind=wrong), out=out)
    assert len(simulator.launches) == 1


def test_explanations_say_simulated(dispatcher: Dispatcher, tmp_path: Path) -> None:
    problem = GemmProblem(64, 64, 64)
    explanation = dispatcher.explain(problem)
    assert explanation.simulated == "sim:gfx942"
    assert "simulated on sim:gfx942" in str(explanation) and "not measured" in str(explanation)
    real = Dispatcher(hip_library(tmp_path / "other", seed="d"), device="hip:0").explain(problem)
    assert real.simulated is None and "simulated" not in str(real)


def test_threads_and_two_architectures(tmp_path: Path, simulator: Simulator) -> None:
    dispatchers = [
        Dispatcher(hip_library(tmp_path / arch, arch=arch, seed=seed), device=f"sim:{arch}")
        for arch, seed in (("gfx942", "0"), ("gfx1100", "e"))
    ]
    a, b = whole(9, 8), whole(8, 7)
    with ThreadPoolExecutor(16) as pool:
        results = list(pool.map(lambda index: dispatchers[index % 2].gemm(a, b), range(64)))
    assert all(np.array_equal(result, a @ b) for result in results)
    assert sorted(arch for arch, _ in simulator.launches) == ["gfx1100"] * 32 + ["gfx942"] * 32


def test_nothing_of_the_simulator_is_loaded_before_a_launch(tmp_path: Path) -> None:
    library = hip_library(tmp_path / "library")
    code = f"""
import sys
from kernelwright.dispatch import Device, Dispatcher, GemmProblem
Dispatcher({str(library.path)!r}, device=Device("sim:gfx942")).explain(GemmProblem(5, 6, 7))
print([name for name in sys.modules if name.startswith(("kernelwright.simulator", "tinygrad"))])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_table_is_the_headers(tmp_path: Path) -> None:
    from kernelwright.dispatch.core import native

    table = hip_library(tmp_path / "library").descriptor.contents
    assert table.struct_size == ctypes.sizeof(native.LibraryStruct)
