"""Launch workspaces: one growing allocation per device, stream and thread, shared by all plans.

The bound: for each device and stream that a thread launches on (a CPU has one), it holds at most one allocation, as
large as the largest workspace that any plan asked for there, plus 256 bytes for its alignment. Smaller requests use the
same memory; a larger one frees it and allocates anew. Arenas are freed when their thread ends, or by :func:`trim`.
Kernels leave nothing in a workspace that a later launch needs.

A launch on a CPU is complete on return, so its memory may be freed at once. On a GPU, earlier launches may still use
it. PyTorch or CuPy allocates it on the stream of the launches, so they use freed memory again only for later work on
that stream. A workspace given by address is the caller's: it must stay allocated until the stream's work is done.
"""

from __future__ import annotations

import threading
from typing import Any, Protocol
from weakref import WeakSet

from kernelwright.dispatch.core import workspace


class Holder(Protocol):
    """Launch arguments that hold the address of an arena; ``stream`` is None when they must be written again."""

    stream: int | None


class _Arena:
    """The memory of one device and stream."""

    __slots__ = ("address", "holders", "owner", "size")

    def __init__(self) -> None:
        self.size = self.address = 0
        self.owner: Any = None
        self.holders: WeakSet[Any] = WeakSet()

    def free(self) -> int:
        """Free the memory and have every holder ask again. Returns the bytes freed."""
        for holder in self.holders:
            holder.stream = None
        self.holders.clear()
        freed, self.size, self.address, self.owner = self.size, 0, 0, None
        return freed


class Arenas:
    """The arenas of one thread, or of one bound plan. One thread at a time may use them."""

    __slots__ = ("__weakref__", "_found")

    def __init__(self) -> None:
        self._found: dict[tuple[str, int], _Arena] = {}

    def address(self, size: int, family: str, device: str, stream: int, holder: Holder) -> int:
        """Return the address of at least ``size`` bytes on ``device`` for launches on ``stream``, aligned to 256 bytes.

        It is valid until ``holder.stream`` is set to None. Raises ArrayError for an array library that cannot allocate
        there.
        """
        stream = 0 if device == "cpu" else stream
        arena = self._found.get((device, stream))
        if arena is None:
            arena = _Arena()
        if size > arena.size:
            workspace.check_family(size, family, device)
            arena.free()  # first, so that old and new memory never exist together
            arena.address, arena.owner = workspace.allocate(size, family, device, stream)
            arena.size = size
            self._found[device, stream] = arena
        arena.holders.add(holder)
        return arena.address

    def free(self) -> int:
        """Free all arenas. Returns the bytes freed."""
        freed = sum(arena.free() for arena in self._found.values())
        self._found.clear()
        return freed


class _Thread(threading.local):
    def __init__(self) -> None:
        self.arenas = Arenas()
        self.apart = 0


_thread = _Thread()


class Apart:
    """A context in which GPU launches of this thread share no workspace: torch allocates one for each and reclaims it.

    For launches that torch may redirect to a memory pool of its own, as its compiler does even before it captures a
    graph: an arena in that pool would outlive torch's knowledge of it.
    """

    def __enter__(self) -> None:
        """Stop sharing until the outermost context ends."""
        _thread.apart += 1

    def __exit__(self, *_: object) -> None:
        """Share again."""
        _thread.apart -= 1


def is_apart() -> bool:
    """Whether launches of this thread share no workspace."""
    return _thread.apart > 0


def of_thread() -> Arenas:
    """The arenas of this thread."""
    return _thread.arenas


def trim() -> int:
    """Free the workspaces kept for launches of this thread, on all devices and streams; returns their bytes.

    The next launch that needs one allocates it again. Other threads may be launching, so each thread trims its own; the
    arenas of a thread are also freed when it ends. Bound plans keep theirs. On a GPU the memory returns to the
    allocator of PyTorch or CuPy, which has its own functions for returning it to the driver.
    """
    return of_thread().free()
