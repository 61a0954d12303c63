"""The run-time of CUDA launchers against a stand-in runtime with two devices: which device every call goes to."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kernelwright.dispatch.core import native
from kernelwright.dispatch.testdata import mocks

HERE = Path(__file__).parent
OK, INVALID, ARCH_MISMATCH, RUNTIME_MISSING, LAUNCH_FAILED = 0, 1, 5, 7, 8
ARCH = {"TARGET": '"sm_90a"', "MAJOR": "9", "MINOR": "0", "MULTIPROCESSORS": "114"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("cuda"), ARCH)


def build(folder: Path, arch: Mapping[str, str]) -> Path:
    sources = [HERE / "fake_cuda.c", HERE / "places.cpp", mocks.NATIVE / "launchers/cuda/common/runtime.cpp"]
    flags = ["-fno-exceptions", "-O2", "-Wall", "-Werror", "-Wno-pedantic", "-I", str(HERE / "fake"), "-Wl,-z,defs"]
    macros = [f"-DKW_CUDA_{name}={value}" for name, value in arch.items()]
    return mocks.compile_shared([*mocks.compilers()[0], *flags, *macros, *map(str, sources)], folder / "built.so")


class Cuda:
    """The launcher's run-time over a stand-in for CUDA's, from a file of its own so that no state is shared."""

    def __init__(self, built: Path, folder: Path) -> None:
        path = folder / "fake_cuda.so"
        path.write_bytes(built.read_bytes())
        self.library = ctypes.CDLL(str(path))
        self.library.fake_last_error.restype = ctypes.c_char_p

    def launch(self, device: int, stream: int = 0, start: int = OK, struct_size: int = 0) -> tuple[int, int]:
        """The status, and the device on which the kernel was started (-1: it was not)."""
        size = struct_size or ctypes.sizeof(native.Launch)
        where = native.Launch(struct_size=size, device=device, stream=stream)
        started = ctypes.c_int()
        return self.library.fake_launch(ctypes.byref(where), start, ctypes.byref(started)), started.value

    def places(self) -> tuple[int, list[tuple[int, int]]]:
        """The status, and the devices with their multiprocessors for which a workspace is made large enough."""
        buffer = (ctypes.c_int * 8)()
        count = ctypes.c_int()
        status = self.library.fake_places(buffer, ctypes.byref(count))
        return status, [(buffer[2 * i], buffer[2 * i + 1]) for i in range(count.value)]

    @property
    def error(self) -> str:
        return str(self.library.fake_last_error().decode())

    @property
    def current(self) -> int:
        ordinal = ctypes.c_int()
        assert self.library.cudaGetDevice(ctypes.byref(ordinal)) == 0
        return ordinal.value

    @property
    def contexts(self) -> list[int]:
        """Whether each device has its primary context."""
        return list((ctypes.c_int * 2).in_dll(self.library, "fake_contexts"))

    def number(self, name: str) -> ctypes.c_int:
        return ctypes.c_int.in_dll(self.library, name)


@pytest.fixture
def cuda(built: Path, tmp_path: Path) -> Cuda:
    return Cuda(built, tmp_path)


def test_a_device_is_compared_with_the_architecture_of_the_library(built: Path, tmp_path: Path) -> None:
    """The stand-in's devices have compute capability 9.0."""

    def check(library: ctypes.CDLL) -> tuple[int, str]:
        reason = ctypes.create_string_buffer(200)
        return library.fake_check_device(0, reason, len(reason)), reason.value.decode()

    assert check(ctypes.CDLL(str(built))) == (OK, "")
    other = build(tmp_path, {"TARGET": '"sm_103a"', "MAJOR": "10", "MINOR": "3", "MULTIPROCESSORS": "148"})
    message = "device 0 has compute capability 9.0; sm_103a code needs 10.3"
    assert check(ctypes.CDLL(str(other))) == (ARCH_MISMATCH, message)


def stream_of(device: int) -> int:
    return 0x1000 * (1 + device) + 8


@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("device", [0, 1])
def test_a_launch_uses_its_device_and_leaves_the_current_one(cuda: Cuda, current: int, device: int) -> None:
    assert cuda.library.cudaSetDevice(current) == 0
    for stream in (0, 1, 2, stream_of(device)):  # null, legacy, per thread, one of its own
        assert cuda.launch(device, stream) == (OK, device), cuda.error
        assert cuda.current == current
    assert cuda.launch(device, start=LAUNCH_FAILED) == (LAUNCH_FAILED, device)
    assert cuda.current == current and cuda.library.fake_depth() == 1


@pytest.mark.parametrize("device", [0, 1])
def test_a_device_that_was_never_used_stays_so(cuda: Cuda, device: int) -> None:
    """Nothing is current in a new thread, nor is it afterwards; only the device of the launch gets a context."""
    for start, stream in ((OK, 0), (OK, stream_of(device)), (LAUNCH_FAILED, 0)):
        assert cuda.launch(device, stream, start) == (start, device), cuda.error
        assert (cuda.library.fake_current(), cuda.library.fake_depth()) == (0, 0)
    assert cuda.launch(device, stream_of(1 - device)) == (INVALID, -1)
    assert (cuda.library.fake_current(), cuda.library.fake_depth()) == (0, 0)
    assert cuda.contexts == [device == 0, device == 1]


@pytest.mark.parametrize("device", [0, 1])
def test_a_context_of_the_programs_own_is_used_on_its_device(cuda: Cuda, device: int) -> None:
    for own in (0x20, 0x21):
        cuda.library.fake_make_current(own)
        assert cuda.launch(device) == (OK, device)
        assert (cuda.library.fake_current(), cuda.library.fake_depth()) == (own, 1)


@pytest.mark.parametrize("current", [0, 1])
@pytest.mark.parametrize("device", [0, 1])
def test_streams_of_the_other_device_are_refused(cuda: Cuda, current: int, device: int) -> None:
    assert cuda.library.cudaSetDevice(current) == 0
    assert cuda.launch(device, stream_of(1 - device)) == (INVALID, -1)
    assert f"the stream is of device {1 - device} and the launch is on device {device}" in cuda.error
    assert cuda.launch(device, 0x9000) == (INVALID, -1)
    assert "stream 0x9000 has no device" in cuda.error
    assert cuda.current == current and cuda.library.fake_depth() == 1
    assert cuda.launch(device, stream_of(device)) == (OK, device)


def test_absent_devices_are_refused(cuda: Cuda) -> None:
    for absent in (-1, 2, 99):
        assert cuda.launch(absent) == (RUNTIME_MISSING, -1)
        assert f"device {absent} cannot be used: 2 CUDA device(s) are visible" in cuda.error
        assert cuda.current == 0 and cuda.contexts == [0, 0]
        assert cuda.library.fake_check_device(absent, None, 0) == RUNTIME_MISSING
    assert [cuda.library.fake_check_device(device, None, 0) for device in (0, 1)] == [OK, OK]


def test_one_device_needs_no_look_at_the_stream(cuda: Cuda) -> None:
    cuda.number("fake_devices").value = 1
    assert cuda.launch(0, stream_of(0)) == (OK, 0)
    assert cuda.number("fake_driver_calls").value == 0


def test_a_kernel_is_prepared_once_on_each_device(cuda: Cuda) -> None:
    for device in (0, 1, 1, 0, 1):
        assert cuda.launch(device) == (OK, device)
    assert list((ctypes.c_int * 2).in_dll(cuda.library, "fake_prepared")) == [1, 1]
    assert [cuda.library.fake_multiprocessors(device) for device in (0, 1, 0, 2)] == [132, 133, 132, -1]


def test_workspaces_do_for_every_device(cuda: Cuda) -> None:
    assert cuda.places() == (OK, [(0, 132), (1, 133)])
    cuda.number("fake_devices").value = 1
    assert cuda.places() == (OK, [(0, 132)])


def test_without_a_device_workspaces_are_those_of_the_architecture(cuda: Cuda) -> None:
    cuda.number("fake_devices").value = 0
    assert cuda.places() == (OK, [(0, 114)])
    assert cuda.launch(0) == (RUNTIME_MISSING, -1)
    assert "no usable CUDA device: no CUDA-capable device is detected" in cuda.error


def test_without_a_device_an_architecture_of_unknown_size_is_refused(tmp_path: Path) -> None:
    cuda = Cuda(build(tmp_path, {**ARCH, "MULTIPROCESSORS": "0"}), tmp_path)
    assert cuda.places() == (OK, [(0, 132), (1, 133)])
    cuda.number("fake_devices").value = 0
    assert cuda.places() == (RUNTIME_MISSING, [])
    assert "no usable CUDA device" in cuda.error


def test_threads_have_current_devices_of_their_own(cuda: Cuda) -> None:
    def both(number: int) -> int:
        own = number % 2
        cuda.library.cudaSetDevice(1 - own)
        assert cuda.launch(own, stream_of(own)) == (OK, own)
        assert cuda.launch(own, stream_of(1 - own)) == (INVALID, -1)
        return cuda.current - (1 - own)

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(both, range(200))) == {0}


def test_a_launch_of_another_abi_is_refused(cuda: Cuda) -> None:
    assert cuda.launch(0, struct_size=8) == (INVALID, -1)
    assert "launch has 8 bytes; ABI 3 needs" in cuda.error


def test_a_driver_without_descriptors_is_named(cuda: Cuda) -> None:
    assert cuda.library.fake_encode() == 0
    assert "the CUDA driver has no cuTensorMapEncodeTiled (needs 12.0 or later)" in cuda.error
