"""A dict of limited size that forgets what was not used for longest, by halves."""

from __future__ import annotations

from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Cache(Generic[K, V]):
    """Two generations of at most ``limit // 2`` entries: a full young one becomes the old one, whose rest is dropped.

    Threads may share it under the interpreter's lock; at worst an entry is forgotten early.
    """

    __slots__ = ("_half", "_old", "_young")

    def __init__(self, limit: int) -> None:
        """``limit`` is at least 2."""
        self._half = limit // 2
        self._young: dict[K, V] = {}
        self._old: dict[K, V] = {}

    def get(self, key: K) -> V | None:
        """What is kept for the key."""
        value = self._young.get(key)
        if value is None:
            value = self._old.get(key)
            if value is not None:
                return self.put(key, value)
        return value

    def put(self, key: K, value: V) -> V:
        """Keep it; returns what another thread may have kept before."""
        young = self._young
        if len(young) >= self._half and key not in young:
            self._old, self._young = young, {}
            young = self._young
        return young.setdefault(key, value)

    def replace(self, key: K, value: V) -> None:
        """Keep it instead of what may be kept."""
        if self.put(key, value) is not value:
            self._young[key] = value

    def clear(self) -> None:
        """Forget everything."""
        self._young, self._old = {}, {}

    def __len__(self) -> int:
        """Entries of both generations."""
        return len(self._young.keys() | self._old.keys())
