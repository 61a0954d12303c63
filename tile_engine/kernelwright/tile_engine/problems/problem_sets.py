"""What each operation says of its problem sets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class ProblemSets:
    """The problem sets of an operation.

    :ivar keys: their names; ``records`` gives the records of one, which may repeat.
    """

    keys: tuple[str, ...]
    records: Callable[[str], Iterable[Mapping[str, Any]]]
