"""The memory of a launch as regions: the caller's buffers, the kernel's arguments, the code object."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernelwright.simulator.errors import SimulatorError
from kernelwright.simulator.machine.memory import Region

Bytes = NDArray[np.uint8]


@dataclass(frozen=True)
class Buffer:
    """Host memory that a kernel may access: ``nbytes`` from ``address`` on. ``name`` appears in faults."""

    address: int
    nbytes: int
    writable: bool = True
    name: str = ""


def constant(address: int, data: bytes, name: str) -> Region:
    """Read-only memory at a simulated address, a multiple of 16."""
    room = np.zeros(len(data) + 16, np.uint8)
    skip = -room.ctypes.data % 16
    held = room[skip : skip + len(data)]
    held[:] = np.frombuffer(data, np.uint8)
    return Region(address, held, writable=False, name=name)


def direct(buffers: Sequence[Buffer]) -> list[Region]:
    """The buffers themselves, without a copy. Raises SimulatorError for an address that cannot be a buffer."""
    return [
        Region(buffer.address, _host(buffer.address, buffer.nbytes), buffer.writable, buffer.name) for buffer in buffers
    ]


@contextmanager
def shared(buffers: Sequence[Buffer]) -> Iterator[list[Region]]:
    """Copies of the buffers in memory that forked processes share; copied back at the end unless an error was raised.

    Overlapping buffers share one copy.
    """
    mirrors = [_Mirror(start, end) for start, end in _spans(buffers)]
    yield [
        Region(buffer.address, mirror.view(buffer.address, buffer.nbytes), buffer.writable, buffer.name)
        for buffer in buffers
        for mirror in mirrors
        if mirror.start <= buffer.address and buffer.address + buffer.nbytes <= mirror.end
    ]
    for buffer in buffers:
        if buffer.writable:
            mirror = next(mirror for mirror in mirrors if mirror.start <= buffer.address < mirror.end)
            _host(buffer.address, buffer.nbytes)[:] = mirror.view(buffer.address, buffer.nbytes)


def contents(buffers: Sequence[Buffer]) -> list[bytes]:
    """Copies of the bytes of the writable buffers, for :func:`restore`."""
    return [_host(buffer.address, buffer.nbytes).tobytes() for buffer in buffers if buffer.writable]


def restore(buffers: Sequence[Buffer], saved: Sequence[bytes]) -> None:
    """Put the bytes back into the same buffers."""
    writable = (buffer for buffer in buffers if buffer.writable)
    for buffer, data in zip(writable, saved, strict=True):
        _host(buffer.address, buffer.nbytes)[:] = np.frombuffer(data, np.uint8)


class _Mirror:
    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        room = np.frombuffer(mmap.mmap(-1, end - start + 16), np.uint8)
        skip = (start - room.ctypes.data) % 16
        self._data = room[skip : skip + end - start]

    def view(self, address: int, nbytes: int) -> Bytes:
        return self._data[address - self.start : address - self.start + nbytes]


def _spans(buffers: Sequence[Buffer]) -> list[tuple[int, int]]:
    """The unions of buffers that overlap."""
    spans: list[tuple[int, int]] = []
    for buffer in sorted(buffers, key=lambda one: one.address):
        start, end = buffer.address, buffer.address + buffer.nbytes
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _host(address: int, nbytes: int) -> Bytes:
    if address <= 0 or nbytes < 0:
        raise SimulatorError(f"no buffer: address {address:#x}, {nbytes} bytes")
    host: Bytes = np.ctypeslib.as_array((ctypes.c_uint8 * nbytes).from_address(address))
    return host
