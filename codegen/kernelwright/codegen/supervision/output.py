"""A command's output within bounds: the beginning and the end of a text, or lines."""

from __future__ import annotations

from collections import deque

TEXT_BYTES = 1 << 20
"""Bytes that are kept from the beginning of a text, and as many from its end."""
LINE_BYTES = 1 << 20
"""The longest line that is kept."""


class Text:
    """Takes any number of bytes; keeps at most ``limit`` from the beginning and as many from the end."""

    def __init__(self, limit: int = TEXT_BYTES) -> None:
        self._limit = limit
        self._head = bytearray()
        self._tail = bytearray()
        self._left_out = 0

    def add(self, data: bytes) -> None:
        """Add the next output."""
        room = self._limit - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self._limit:
            self._cut()

    def __str__(self) -> str:
        """Return the text, with a note about what was left out."""
        if len(self._tail) > self._limit:
            self._cut()
        gap = f"\n[... {self._left_out} bytes left out ...]\n" if self._left_out else ""
        if not gap:
            return bytes(self._head + self._tail).decode(errors="replace")
        return self._head.decode(errors="replace") + gap + self._tail.decode(errors="replace")

    def _cut(self) -> None:
        beyond = len(self._tail) - self._limit
        self._left_out += beyond
        del self._tail[:beyond]


class Lines:
    """Splits bytes into lines; ``overflow`` is set when a line is too long or too many are waiting."""

    def __init__(self, limit: int = LINE_BYTES, count: int = 10_000) -> None:
        self._limit, self._count = limit, count
        self._waiting: deque[bytes] = deque()
        self._partial = bytearray()
        self.overflow = False

    def add(self, data: bytes) -> None:
        """Add the next output; ignored after an overflow."""
        if self.overflow:
            return
        self._partial += data
        *whole, rest = self._partial.split(b"\n")
        self._waiting += map(bytes, whole)
        self._partial = bytearray(rest)
        self.overflow = len(rest) > self._limit or len(self._waiting) > self._count

    def next(self) -> bytes | None:
        """Return the next whole line without its end, None if there is none yet."""
        return self._waiting.popleft() if self._waiting else None
