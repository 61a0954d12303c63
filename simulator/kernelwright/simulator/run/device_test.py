"""From the stand-in runtime to a simulator (here one that only writes down what it is asked) and back."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.errors import Fault, SimulatorError
from kernelwright.simulator.run import device
from kernelwright.simulator.run.device import Settings, configure, last_report, last_reports, run, settings
from kernelwright.simulator.run.launch import Buffer
from kernelwright.simulator.run.report import LaunchReport
from kernelwright.simulator.run.runtime import ARCHS
from kernelwright.simulator.testing.runtime import code_object, runtime_path

BUFFERS = (Buffer(0x1000, 64, False, "A"), Buffer(0x2000, 32, True, "D"))


class Recorder:
    """Stands for simulators: what they were made with and asked to run."""

    def __init__(self) -> None:
        self.made: list[Settings] = []
        self.launches: list[dict[str, Any]] = []
        self.failure: BaseException | None = None

    def __call__(self, settings: Settings) -> Recorder:
        self.made.append(settings)
        return self

    def launch(self, image: bytes, kernel: str, **rest: Any) -> LaunchReport:
        self.launches.append({"image": image, "kernel": kernel, **rest})
        if self.failure is not None:
            raise self.failure
        return LaunchReport(kernel, "gfx942", 1, 4, len(rest["arguments"]), {"matrix": 7})


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    monkeypatch.setenv("KERNELWRIGHT_SIMULATOR_LIBRARY", str(runtime_path()))
    monkeypatch.setattr(device, "_runtime", None)
    monkeypatch.setattr(device._state, "executor", None)
    simulator = Recorder()
    monkeypatch.setattr(device, "_simulator", simulator)
    yield simulator
    if device._runtime is not None:
        device._runtime.close()


def launcher(arch: str, arguments: bytes = b"arguments", kernel: str = "kernel") -> Callable[[], int]:
    """What a kernel library does, in the thread that calls it; the status is that of HIP."""
    hip: Any = ctypes.CDLL(str(runtime_path()))

    def launch() -> int:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        image = code_object(arch, (kernel,))
        assert hip.hipModuleLoadData(ctypes.byref(module), image) == 0
        assert hip.hipModuleGetFunction(ctypes.byref(function), module, kernel.encode()) == 0
        buffer, size = ctypes.create_string_buffer(arguments, len(arguments)), ctypes.c_size_t(len(arguments))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
        status: int = hip.hipModuleLaunchKernel(function, 2, 1, 1, 256, 1, 1, 0, None, None, extra)
        return status

    return launch


def test_a_launch_reaches_the_simulator_with_its_memory(recorder: Recorder) -> None:
    assert run("gfx942", BUFFERS, launcher("gfx942")) == 0
    assert recorder.launches == [
        {
            "image": code_object("gfx942"),
            "kernel": "kernel",
            "grid": (2, 1, 1),
            "block": (256, 1, 1),
            "arguments": b"arguments",
            "buffers": BUFFERS,
            "dynamic_lds": 0,
            "arch": "gfx942",
        }
    ]


@pytest.mark.parametrize("arch", ARCHS)
def test_the_device_is_the_current_one_during_the_call(recorder: Recorder, arch: str) -> None:
    assert run(arch, (), launcher(arch)) == 0
    other = ARCHS[ARCHS.index(arch) - 1]
    with pytest.raises(AssertionError):  # its code object is for the other device
        run(other, (), launcher(arch))


def test_reports_are_the_threads(recorder: Recorder) -> None:
    def two() -> int:
        return launcher("gfx942", b"1")() or launcher("gfx942", b"22")()

    assert run("gfx942", (), two) == 0
    assert [report.instructions for report in last_reports()] == [1, 2]
    report = last_report()
    assert report is not None and report.instructions == 2 and report.simulated and report.counts["matrix"] == 7
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(last_report).result() is None
    assert run("gfx942", (), lambda: 5) == 5
    assert last_report() is None  # the last call launched nothing


def test_a_fault_comes_out_as_it_was_raised(recorder: Recorder) -> None:
    recorder.failure = Fault(
        "outside", kernel="gemm", workgroup=(0, 1, 2), wave=3, pc=64, instruction="s_nop", address=16
    )
    texts = []

    def launch() -> int:
        status = launcher("gfx942")()
        hip = ctypes.CDLL(str(runtime_path()))
        hip.hipGetErrorString.restype = ctypes.c_char_p
        texts.append(hip.hipGetErrorString(status).decode())
        return status

    with pytest.raises(Fault) as caught:
        run("gfx942", BUFFERS, launch)
    assert caught.value is recorder.failure
    assert texts == [str(caught.value)] and "pc 0x40" in texts[0] and last_report() is None
    recorder.failure = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        run("gfx942", BUFFERS, launch)
    recorder.failure = None
    assert run("gfx942", BUFFERS, launch) == 0


def test_a_launch_without_a_device_has_no_memory(recorder: Recorder) -> None:
    run("gfx942", BUFFERS, launcher("gfx942"))
    assert launcher("gfx942")() == 0  # someone who calls the library directly
    assert recorder.launches[1]["buffers"] == ()


def test_sixteen_threads_keep_their_memory_apart(recorder: Recorder) -> None:
    def work(number: int) -> int:
        arguments = str(number).encode()
        assert run("gfx942", (Buffer(number + 1, 1),), launcher("gfx942", arguments)) == 0
        report = last_report()
        assert report is not None
        return report.instructions

    with ThreadPoolExecutor(16) as pool:
        assert list(pool.map(work, range(160))) == [len(str(number)) for number in range(160)]
    for launch in recorder.launches:
        assert launch["buffers"] == (Buffer(int(launch["arguments"]) + 1, 1),)


def test_settings_make_simulators(recorder: Recorder) -> None:
    launch, checks = launcher("gfx942"), Checks(races=True)
    run("gfx942", (), launch)
    with configure(checks=checks, seed=3):
        run("gfx942", (), launch)
        run("gfx942", (), launch)
        with configure(seed=None, processes=2):
            run("gfx942", (), launch)
            assert settings() == Settings(checks, None, 2)
    run("gfx942", (), launch)
    assert recorder.made == [Settings(), Settings(checks, 3), Settings(checks, None, 2), Settings()]


def test_contexts_of_threads_may_overlap() -> None:
    entered, leave = threading.Event(), threading.Event()

    def other() -> None:
        with configure(seed=7):
            entered.set()
            assert leave.wait(60)

    thread = threading.Thread(target=other)
    with configure(seed=5):
        thread.start()
        assert entered.wait(60) and settings().seed == 7
    assert settings().seed == 7
    leave.set()
    thread.join(60)
    assert settings() == Settings()


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"seed": -1}, ValueError, "seed is -1"),
        ({"seed": "1"}, ValueError, "seed is '1'"),
        ({"instruction_limit": 0}, ValueError, "instruction_limit is 0"),
        ({"instruction_limit": True}, ValueError, "instruction_limit is True"),
        ({"processes": 0}, ValueError, "processes is 0"),
        ({"processes": None}, ValueError, "processes is None"),
        ({"checks": "races"}, TypeError, "checks is 'races'"),
        ({"checks": None}, TypeError, "checks is None"),
    ],
)
def test_wrong_settings_are_refused_when_they_are_made(wrong: dict[str, Any], error: type, words: str) -> None:
    with pytest.raises(error, match=words), configure(**wrong):
        pass
    assert settings() == Settings()


def test_a_forked_child_can_launch(recorder: Recorder) -> None:
    run("gfx942", (), launcher("gfx942"))
    with device._state.launching, device._state.lock:  # as if other threads were in the middle of something
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = run("gfx942", (), launcher("gfx942"))
            finally:
                os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_an_unknown_architecture_is_refused(recorder: Recorder) -> None:
    with pytest.raises(SimulatorError, match=r"gfx906.*gfx90a"):
        run("gfx906", (), lambda: 0)
