"""The stand-in HIP runtime: a C library loaded by kernel libraries that passes their launches to Python."""

from __future__ import annotations

import atexit
import ctypes
import os
import shutil
import tempfile
import threading
from collections.abc import Callable
from ctypes import POINTER, c_char_p, c_int32, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from kernelwright.files.proposals import closest
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import SimulatorError

LIBRARY = "libkernelwright_simulator.so"
ARCHS = tuple(TARGETS)
"""Architectures by device ordinal."""


class LaunchStruct(ctypes.Structure):
    """``kw_simulator_launch``."""

    _fields_ = [
        ("struct_size", c_uint32),
        ("device", c_int32),
        ("image", c_void_p),
        ("image_bytes", c_uint64),
        ("kernel", c_char_p),
        ("arguments", c_void_p),
        ("argument_bytes", c_uint64),
        ("grid", c_uint32 * 3),
        ("block", c_uint32 * 3),
        ("lds_bytes", c_uint32),
        ("reserved", c_uint32),
    ]


_Callback = ctypes.CFUNCTYPE(c_int32, POINTER(LaunchStruct), c_void_p, c_uint64)


@dataclass(frozen=True)
class Request:
    """One launch: ``grid`` in workgroups, ``block`` in work-items, ``arguments`` the kernel's argument buffer."""

    arch: str
    image: bytes
    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    arguments: bytes
    dynamic_lds: int


class Runtime:
    """The loaded runtime library. A process has one; :mod:`kernelwright.simulator.run.device` holds it."""

    def __init__(self, path: Path, run: Callable[[Request], None]) -> None:
        """Load the library at ``path``; it calls ``run`` for each launch.

        An exception of ``run`` fails the launch with its text. Raises SimulatorError if ``path`` is another library.
        """
        self.path = path
        self._run = run
        self._images: dict[int, bytes] = {}  # by address; a loaded code object never moves
        try:
            self._library = ctypes.CDLL(str(path))
            install, self._select = self._library.kw_simulator_install, self._library.hipSetDevice
        except (OSError, AttributeError) as error:
            raise SimulatorError(f"{path} is not the simulator's runtime: {error}") from error
        for ordinal, target in enumerate(TARGETS.values()):
            name, hip_name = target.name.encode(), target.hip_name.encode()
            if self._library.kw_simulator_device(name, hip_name, target.machine) != ordinal:
                raise SimulatorError(f"{path} has no room for the architecture {target.name}")
        install.restype, install.argtypes = None, [_Callback]
        self._install = install
        self._callback = _Callback(self._launched)  # lives as long as the library may call it
        install(self._callback)

    def close(self) -> None:
        """Refuse all further launches."""
        self._install(_Callback())

    def select(self, arch: str) -> None:
        """Make the simulated ``arch`` the calling thread's current device. SimulatorError if it is not simulated."""
        if arch not in ARCHS or self._select(ARCHS.index(arch)):
            raise SimulatorError(f"there is no simulated {arch}{closest(arch, ARCHS)}; allowed: {', '.join(ARCHS)}")

    def _launched(self, launch: Any, text: int, text_bytes: int) -> int:
        try:
            self._run(self._request(launch.contents))
        except BaseException as error:  # exceptions cannot cross the C frames; the device raises it again
            reason = (str(error) or type(error).__name__).encode()[: text_bytes - 1]
            reason = reason.decode(errors="ignore").encode()  # the cut may have split a character
            ctypes.memmove(text, reason + b"\0", len(reason) + 1)
            return 1
        return 0

    def _request(self, launch: LaunchStruct) -> Request:
        image = self._images.get(launch.image)
        if image is None:
            image = self._images[launch.image] = ctypes.string_at(launch.image, launch.image_bytes)
        return Request(
            ARCHS[launch.device],
            image,
            launch.kernel.decode(),
            (launch.grid[0], launch.grid[1], launch.grid[2]),
            (launch.block[0], launch.block[1], launch.block[2]),
            ctypes.string_at(launch.arguments, launch.argument_bytes),
            launch.lds_bytes,
        )


_lock = threading.Lock()
_path: Path | None = None


def library_path() -> Path:
    """Path of the library: $KERNELWRIGHT_SIMULATOR_LIBRARY, else the packaged file (SimulatorError without it)."""
    global _path
    given = os.environ.get("KERNELWRIGHT_SIMULATOR_LIBRARY")
    if given:
        return Path(given)
    with _lock:
        if _path is None:
            _path = _packaged()
        return _path


def _packaged() -> Path:
    file = resources.files("kernelwright.simulator").joinpath(LIBRARY)
    if not file.is_file():
        raise SimulatorError(
            f"{file} is not there; pip install kernelwright[simulator], or set KERNELWRIGHT_SIMULATOR_LIBRARY to it"
        )
    if isinstance(file, Path):
        return file
    # In a zip archive: kernel libraries open the runtime by path, so it is extracted for the life of the process.
    folder = Path(tempfile.mkdtemp(prefix="kernelwright-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path = folder / LIBRARY
    path.write_bytes(file.read_bytes())
    return path
