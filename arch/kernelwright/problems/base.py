"""What classes of problems share: checks, hash and text."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import fields
from functools import cache
from operator import attrgetter
from typing import Any

from kernelwright.files.proposals import closest
from kernelwright.problems.errors import ProblemError
from kernelwright.problems.reading import shown


@cache
def _compared(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function that reads the fields compared for equality."""
    return attrgetter(*(one.name for one in fields(kind) if one.compare))


class BaseProblem:
    """Base of frozen data classes that set ``__hash__ = BaseProblem.__hash__`` once they call :meth:`_keep_hash`."""

    def _set(self, field: str, value: object) -> None:
        object.__setattr__(self, field, value)

    def _choose(self, field: str, allowed: Collection[str]) -> None:
        value = getattr(self, field)
        if not isinstance(value, str) or value not in allowed:
            listed = tuple(allowed)
            raise ProblemError(f"{field} is {value!r}{closest(value, listed)}; allowed: {', '.join(listed)}")

    def _keep_hash(self) -> None:
        """Store the hash: caches look plans up by problem, and its many fields are not hashed each time."""
        self._set("_hash", hash(_compared(type(self))(self)))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        """Return the hash of all fields."""
        kept: Any = self.__dict__["_hash"]
        return int(kept)

    def __repr__(self) -> str:
        """Return the constructor call, without fields that have their defaults."""
        return shown(self)
