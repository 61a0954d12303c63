"""The stand-in HIP runtime as kernel libraries meet it: through its C functions."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import SimulatorError
from kernelwright.simulator.run import runtime as runtime_module
from kernelwright.simulator.run.runtime import ARCHS, Request, Runtime, library_path
from kernelwright.simulator.testing.runtime import code_object, runtime_path

INVALID_VALUE, INVALID_CONFIGURATION, INVALID_DEVICE, INVALID_IMAGE = 1, 9, 101, 200
NO_BINARY, INVALID_HANDLE, NOT_FOUND, LAUNCH_FAILURE, NOT_INITIALIZED = 209, 400, 500, 719, 3


class Hip:
    """The calls that a launcher makes; an error is raised with its text."""

    class Error(Exception):
        """``code`` and hipGetErrorString's text."""

        def __init__(self, code: int, text: str) -> None:
            super().__init__(f"{code}: {text}")
            self.code = code

    def __init__(self, path: Path) -> None:
        self.c: Any = ctypes.CDLL(str(path))
        self.c.hipGetErrorString.restype = ctypes.c_char_p
        for name in ("hipModuleLoadData", "hipModuleGetFunction", "hipModuleLaunchKernel"):
            getattr(self.c, name).restype = ctypes.c_int

    def check(self, code: int) -> None:
        if code:
            raise Hip.Error(code, self.c.hipGetErrorString(code).decode())

    def load(self, image: bytes | None) -> int:
        module = ctypes.c_void_p()
        self.check(self.c.hipModuleLoadData(ctypes.byref(module), image))
        return module.value or 0

    def function(self, module: int, name: str) -> int:
        function = ctypes.c_void_p()
        self.check(self.c.hipModuleGetFunction(ctypes.byref(function), ctypes.c_void_p(module), name.encode()))
        return function.value or 0

    def launch(
        self,
        function: int,
        arguments: bytes = b"",
        grid: tuple[int, int, int] = (1, 1, 1),
        block: tuple[int, int, int] = (64, 1, 1),
        lds: int = 0,
        stream: int = 0,
        **wrong: Any,
    ) -> None:
        buffer, size = ctypes.create_string_buffer(arguments, len(arguments)), ctypes.c_size_t(len(arguments))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(buffer), 2, ctypes.addressof(size), 3)
        for index, value in wrong.get("extra", {}).items():
            extra[index] = value
        code = self.c.hipModuleLaunchKernel(
            ctypes.c_void_p(function), *grid, *block, lds, ctypes.c_void_p(stream),
            wrong.get("parameters"), None if wrong.get("no_extra") else extra,
        )  # fmt: skip
        self.check(code)


@pytest.fixture(scope="module")
def hip() -> Hip:
    Runtime(runtime_path(), lambda request: None).close()  # which tells it the devices
    return Hip(runtime_path())


@pytest.fixture
def requests() -> Iterator[list[Request]]:
    """What the callback got."""
    got: list[Request] = []
    yield from installed(got.append, got)


def installed(run: Callable[[Request], None], result: Any) -> Iterator[Any]:
    runtime = Runtime(runtime_path(), run)
    yield result
    runtime.close()


def fails(code: int, *words: str) -> Any:
    return pytest.raises(Hip.Error, match=f"^{code}: " + "".join(f"(?=.*{word})" for word in words))


def test_devices_are_the_architectures_in_order(hip: Hip) -> None:
    assert tuple(TARGETS) == ARCHS
    count = ctypes.c_int()
    hip.check(hip.c.hipGetDeviceCount(ctypes.byref(count)))
    assert count.value == len(ARCHS)
    for ordinal, arch in enumerate(ARCHS):
        properties = ctypes.create_string_buffer(b"\xff" * 2000, 2000)
        hip.check(hip.c.hipGetDevicePropertiesR0600(properties, ordinal))
        assert properties.value.decode() == f"simulated {arch}"
        assert ctypes.string_at(ctypes.addressof(properties) + 1160).decode() == arch
        assert properties.raw[1472:] == b"\xff" * (2000 - 1472)
    for wrong in (-1, len(ARCHS)):
        with fails(INVALID_DEVICE, f"device {wrong}", "0 to 4"):
            hip.check(hip.c.hipGetDevicePropertiesR0600(properties, wrong))
        with fails(INVALID_DEVICE, f"device {wrong}"):
            hip.check(hip.c.hipSetDevice(wrong))


def test_the_current_device_is_the_threads(hip: Hip) -> None:
    def current() -> int:
        ordinal = ctypes.c_int(-1)
        hip.check(hip.c.hipGetDevice(ctypes.byref(ordinal)))
        return ordinal.value

    hip.check(hip.c.hipSetDevice(3))
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(current).result() == 0
    assert current() == 3


@pytest.mark.parametrize("arch", ARCHS)
def test_a_launch_arrives_as_it_was_made(hip: Hip, requests: list[Request], arch: str) -> None:
    image = code_object(arch, ("first", "second"), padding=1000)
    hip.check(hip.c.hipSetDevice(ARCHS.index(arch)))
    function = hip.function(hip.load(image + b"behind the file"), "second")
    hip.launch(function, b"12345\x006789", grid=(3, 4, 5), block=(8, 7, 2), lds=96)
    assert requests == [Request(arch, image, "second", (3, 4, 5), (8, 7, 2), b"12345\x006789", 96)]
    hip.launch(function, b"")
    assert requests[1].arguments == b"" and requests[1].image is requests[0].image


def test_an_image_is_copied(hip: Hip, requests: list[Request]) -> None:
    hip.check(hip.c.hipSetDevice(0))
    image = code_object("gfx90a")
    buffer = ctypes.create_string_buffer(image, len(image))
    module = hip.load(buffer)  # type: ignore[arg-type]
    ctypes.memset(buffer, 0, len(image))
    hip.launch(hip.function(module, "kernel"))
    assert requests[0].image == image


def test_bad_images_are_refused(hip: Hip) -> None:
    hip.check(hip.c.hipSetDevice(1))
    with fails(NO_BINARY, "gfx90a", "gfx942"):
        hip.load(code_object("gfx90a"))
    unknown = bytearray(code_object("gfx942"))
    unknown[48] = 0x2F
    with fails(NO_BINARY, "not simulated", "0x2f", "gfx942"):
        hip.load(bytes(unknown))
    for image in (b"\x7fELF" + bytes(60), bytes(64), code_object("gfx942", machine=62)):
        with fails(INVALID_IMAGE, "no AMD GPU code object"):
            hip.load(image)
    with fails(INVALID_VALUE, "null"):
        hip.load(None)


def test_kernels_are_found_by_their_whole_name(hip: Hip) -> None:
    hip.check(hip.c.hipSetDevice(1))
    module = hip.load(code_object("gfx942", ("gemm_large", "gemm")))
    assert hip.function(module, "gemm") and hip.function(module, "gemm_large")
    for name in ("gem", "gemm.kd", "emm", "", "large"):
        with fails(NOT_FOUND, f"kernel {name}"):
            hip.function(module, name)
    with fails(INVALID_HANDLE, "no module"):
        hip.function(module + 8, "gemm")


def test_bad_launches_never_reach_the_simulator(hip: Hip, requests: list[Request]) -> None:
    hip.check(hip.c.hipSetDevice(1))
    kernel = hip.function(hip.load(code_object("gfx942")), "kernel")
    with fails(INVALID_HANDLE, "no kernel"):
        hip.launch(kernel + 8)
    for grid, block in (((0, 1, 1), (64, 1, 1)), ((1, 1, 0), (64, 1, 1)), ((1, 1, 1), (64, 0, 1))):
        with fails(INVALID_CONFIGURATION, "empty"):
            hip.launch(kernel, grid=grid, block=block)
    for block in ((1025, 1, 1), (512, 3, 1), (1, 1, 2**31), (2**16, 2**16, 1)):
        with fails(INVALID_CONFIGURATION, "more than 1024"):
            hip.launch(kernel, block=block)
    with fails(INVALID_CONFIGURATION, r"2\^32"):
        hip.launch(kernel, grid=(2**26, 1, 1))
    with fails(INVALID_HANDLE, "streams"):
        hip.launch(kernel, stream=0x77)
    ordinal = ctypes.c_int()
    with fails(INVALID_HANDLE, "streams"):
        hip.check(hip.c.hipStreamGetDevice(ctypes.c_void_p(0x77), ctypes.byref(ordinal)))
    hip.check(hip.c.hipStreamGetDevice(None, ctypes.byref(ordinal)))
    assert ordinal.value == 1
    for wrong in ({0: 2}, {1: None}, {2: 1}, {3: None}, {4: None}):
        with fails(INVALID_VALUE, "extra"):
            hip.launch(kernel, b"1234", extra=wrong)
    with fails(INVALID_VALUE, "kernelParams"):
        hip.launch(kernel, no_extra=True)
    with fails(INVALID_VALUE, "kernelParams"):
        hip.launch(kernel, parameters=(ctypes.c_void_p * 1)(1))
    hip.check(hip.c.hipSetDevice(2))
    with fails(INVALID_DEVICE, "gfx942", "gfx950"):
        hip.launch(kernel)
    assert requests == []


def test_without_a_simulator_no_launch_succeeds(hip: Hip) -> None:
    hip.c.kw_simulator_install(None)
    hip.check(hip.c.hipSetDevice(1))
    kernel = hip.function(hip.load(code_object("gfx942")), "kernel")
    with fails(NOT_INITIALIZED, "no simulator is installed", "sim:gfx942"):
        hip.launch(kernel)


def test_a_failure_carries_its_text_in_its_thread(hip: Hip) -> None:
    def run(request: Request) -> None:
        raise SimulatorError(request.arguments.decode())

    with_failure = installed(run, None)
    next(with_failure)
    barrier = threading.Barrier(8)

    def fail(text: str) -> str:
        hip.check(hip.c.hipSetDevice(1))
        kernel = hip.function(hip.load(code_object("gfx942")), "kernel")
        barrier.wait(60)
        with pytest.raises(Hip.Error) as caught:
            hip.launch(kernel, text.encode())
        return str(caught.value)

    texts = [f"fault number {number}" for number in range(7)] + ["\N{MULTIPLICATION SIGN}" * 2000]
    with ThreadPoolExecutor(8) as pool:
        messages = list(pool.map(fail, texts))
    assert messages[:7] == [f"{LAUNCH_FAILURE}: {text}" for text in texts[:7]]
    assert messages[7].startswith(f"{LAUNCH_FAILURE}: \N{MULTIPLICATION SIGN}")
    assert hip.c.hipGetErrorString(LAUNCH_FAILURE) != b"" and hip.c.hipGetErrorString(0) == b"no error"
    list(with_failure)


def test_sixteen_threads_load_and_launch(hip: Hip, requests: list[Request]) -> None:
    def work(number: int) -> None:
        arch = ARCHS[number % len(ARCHS)]
        hip.check(hip.c.hipSetDevice(ARCHS.index(arch)))
        kernel = hip.function(hip.load(code_object(arch, (f"kernel_{number}",))), f"kernel_{number}")
        for _ in range(20):
            hip.launch(kernel, str(number).encode(), grid=(number + 1, 1, 1))

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(work, range(16)))
    assert len(requests) == 320
    for request in requests:
        number = int(request.arguments)
        assert (request.kernel, request.arch) == (f"kernel_{number}", ARCHS[number % len(ARCHS)])
        assert request.grid == (number + 1, 1, 1)


def test_the_library_is_found_or_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("KERNELWRIGHT_SIMULATOR_LIBRARY", "/some/file.so")
    assert library_path() == Path("/some/file.so")
    with pytest.raises(SimulatorError, match=r"/some/file\.so is not the simulator's runtime"):
        Runtime(library_path(), lambda request: None)
    monkeypatch.delenv("KERNELWRIGHT_SIMULATOR_LIBRARY")
    monkeypatch.setattr(runtime_module, "_path", None)
    monkeypatch.setattr(resources, "files", lambda package: tmp_path)
    with pytest.raises(SimulatorError, match=r"install kernelwright\[simulator\]"):
        library_path()
    (tmp_path / runtime_module.LIBRARY).write_bytes(runtime_path().read_bytes())
    assert library_path() == tmp_path / runtime_module.LIBRARY


def test_a_library_inside_an_archive_gets_a_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.write(runtime_path(), runtime_module.LIBRARY)
    monkeypatch.delenv("KERNELWRIGHT_SIMULATOR_LIBRARY", raising=False)
    monkeypatch.setattr(runtime_module, "_path", None)
    monkeypatch.setattr(resources, "files", lambda package: zipfile.Path(tmp_path / "a.zip"))
    path = library_path()
    assert path.read_bytes() == runtime_path().read_bytes() and library_path() is path
