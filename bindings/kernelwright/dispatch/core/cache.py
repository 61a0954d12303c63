"""A dict of limited size that drops the half of its entries used least recently."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Two generations of at most ``limit // 2`` entries each.

    A hit moves its entry to the recent generation. When that is full, it replaces the older one. Threads may share a
    cache under the interpreter lock; at worst an entry is dropped early.
    """

    __slots__ = ("_half", "_older", "_recent")

    def __init__(self, limit: int) -> None:
        """``limit`` is at least 2."""
        self._half = limit // 2
        self._recent: dict[K, V] = {}
        self._older: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """Return the value of the key, or None. Unhashable options have no plan yet, and checks refuse them."""
        try:
            value = self._recent.get(key)
        except TypeError:
            return None
        if value is None:
            value = self._older.get(key)
            if value is not None:
                return self.put(key, value)
        return value

    def put(self, key: K, value: V) -> V:
        """Store a value unless the key has one. Returns the stored value."""
        recent = self._recent
        if len(recent) >= self._half and key not in recent:
            self._older, self._recent = recent, {}
            recent = self._recent
        return recent.setdefault(key, value)

    def replace(self, key: K, value: V) -> None:
        """Store a value in place of any other."""
        if self.put(key, value) is not value:
            self._recent[key] = value

    def clear(self) -> None:
        """Drop all entries."""
        self._recent, self._older = {}, {}

    def __len__(self) -> int:
        """Number of entries."""
        return len(self._recent.keys() | self._older.keys())
