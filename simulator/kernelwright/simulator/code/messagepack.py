"""Decodes MessagePack, the format of a code object's metadata (https://github.com/msgpack/msgpack/blob/master/spec.md)."""

from __future__ import annotations

import struct
from typing import Any

# First byte → format of the number that follows it.
_NUMBERS = {
    0xCA: ">f", 0xCB: ">d", 0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
_CONSTANTS = {0xC0: None, 0xC2: False, 0xC3: True}
_SIZED = {  # first byte → what it holds and the format of its size
    0xC4: ("bytes", ">B"), 0xC5: ("bytes", ">H"), 0xC6: ("bytes", ">I"), 0xD9: ("text", ">B"), 0xDA: ("text", ">H"),
    0xDB: ("text", ">I"), 0xDC: ("list", ">H"), 0xDD: ("list", ">I"), 0xDE: ("map", ">H"), 0xDF: ("map", ">I"),
}  # fmt: skip
_DEEPEST = 32


def unpack(data: bytes) -> Any:
    """The value that ``data`` starts with: dict, list, str, bytes, int, float, bool or None. ValueError if damaged."""
    return _Reader(data).value(0)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def value(self, depth: int) -> Any:
        if depth > _DEEPEST:
            raise ValueError(f"MessagePack is nested more than {_DEEPEST} deep")
        first = self._take(1)[0]
        if first < 0x80 or first >= 0xE0:
            return first if first < 0x80 else first - 0x100
        if first < 0xC0:
            kind, count = ("map", first & 15) if first < 0x90 else ("list", first & 15)
            kind, count = ("text", first & 31) if first >= 0xA0 else (kind, count)
            return self._sized(kind, count, depth)
        if first in _CONSTANTS:
            return _CONSTANTS[first]
        if first in _NUMBERS:
            return self._number(_NUMBERS[first])
        if first in _SIZED:
            kind, form = _SIZED[first]
            return self._sized(kind, self._number(form), depth)
        raise ValueError(f"MessagePack has an unknown type {first:#x}")

    def _sized(self, kind: str, count: int, depth: int) -> Any:
        if kind in ("text", "bytes"):
            data = self._take(count)
            return data.decode() if kind == "text" else data
        if kind == "list":
            return [self.value(depth + 1) for _ in range(count)]
        return {self.value(depth + 1): self.value(depth + 1) for _ in range(count)}

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _take(self, count: int) -> bytes:
        found = self._data[self._at : self._at + count]
        if len(found) != count:
            raise ValueError("MessagePack is cut off")
        self._at += count
        return found
