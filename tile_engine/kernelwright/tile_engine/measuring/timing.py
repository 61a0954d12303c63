"""Times of launches on a CPU, in rounds in which several launches take turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kernelwright.tile_engine.measuring.settings import Settings

Launch = Callable[[], object]
_FLUSHED_BYTES = 256 << 20  # more than the last-level cache of current processors' core complexes


def seconds_of(
    launches: Mapping[str, Sequence[Launch]], settings: Settings, begin: Callable[[str], None]
) -> dict[str, list[float]]:
    """Seconds of one launch in each round, by name; ``begin`` is told the name before each round.

    Each name has one launch for each set of operands; calls rotate through them. The order of names rotates as well,
    so that a change of the clock or of the load meets all of them.
    """
    flush = _flusher() if settings.flush_cache else None
    repeats = {}
    for name, each in launches.items():
        begin(name)
        repeats[name] = _repeat(each, settings)
    spent: dict[str, list[float]] = {name: [] for name in launches}
    names = list(launches)
    for turn in range(settings.rounds):
        first = turn % len(names) if names else 0
        for name in names[first:] + names[:first]:
            begin(name)
            if flush is not None:
                flush()
            spent[name].append(_round(launches[name], repeats[name]))
    return spent


def _repeat(each: Sequence[Launch], settings: Settings) -> int:
    """Launches in a round. The launches that find it out are the warm-up."""
    start = time.perf_counter()
    count = 0
    while count < max(settings.warmup, 1):
        each[count % len(each)]()
        count += 1
    once = max((time.perf_counter() - start) / count, 1e-9)
    return settings.repeat or max(1, math.ceil(settings.duration_s / settings.rounds / once))


def _round(each: Sequence[Launch], repeat: int) -> float:
    sets = len(each)
    start = time.perf_counter()
    for number in range(repeat):
        each[number % sets]()
    return (time.perf_counter() - start) / repeat


def _flusher() -> Launch:
    memory = np.zeros(_FLUSHED_BYTES, np.uint8)

    def flush() -> None:
        memory[::64] += 1

    return flush
