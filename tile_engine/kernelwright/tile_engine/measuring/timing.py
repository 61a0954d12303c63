"""Rounds in which several launches take turns, and times of launches on a CPU."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from kernelwright.tile_engine.measuring.settings import Settings

Launch = Callable[[], object]
_FLUSHED_BYTES = 256 << 20  # more than the last-level cache of current processors' core complexes
_MOST_LAUNCHES = 10_000  # launches in a round


def in_turns(
    measured: Mapping[str, Callable[[], float]], settings: Settings, begin: Callable[[str], None]
) -> dict[str, list[float]]:
    """Values of each function in each round; ``begin`` is told the name before each call.

    Warm-up rounds come first, until clocks have had ``settings.warm_s`` seconds to ramp up. The order of names rotates,
    so that a change of clock or load affects all of them.
    """
    start = time.perf_counter()
    while measured and time.perf_counter() - start < settings.warm_s:
        for name, work in measured.items():
            begin(name)
            work()
    samples: dict[str, list[float]] = {name: [] for name in measured}
    names = list(measured)
    for turn in range(settings.rounds):
        first = turn % len(names) if names else 0
        for name in names[first:] + names[:first]:
            begin(name)
            samples[name].append(measured[name]())
    return samples


def repeat_for(once_s: float, settings: Settings) -> int:
    """Launches per round for a launch that takes ``once_s`` seconds."""
    wanted = settings.duration_s / settings.rounds / max(once_s, 1e-9)
    return settings.repeat or max(1, min(_MOST_LAUNCHES, math.ceil(wanted)))


def timed_calls(
    launches: Mapping[str, Sequence[Launch]], settings: Settings, begin: Callable[[str], None]
) -> dict[str, list[float]]:
    """Seconds of one call in each round, by name.

    Each name has one launch for each set of operands; calls rotate through them.
    """
    flush = _flusher() if settings.flush_cache else None
    measured = {}
    for name, each in launches.items():
        begin(name)
        measured[name] = _round(each, repeat_for(_warm_up(each, settings.warmup), settings), flush)
    return in_turns(measured, settings, begin)


def _warm_up(each: Sequence[Launch], launches: int) -> float:
    """Run at least one launch. Returns the seconds per launch."""
    count = max(launches, 1)
    start = time.perf_counter()
    for number in range(count):
        each[number % len(each)]()
    return (time.perf_counter() - start) / count


def _round(each: Sequence[Launch], repeat: int, flush: Launch | None) -> Callable[[], float]:
    sets = len(each)

    def measured() -> float:
        if flush is not None:
            flush()
        start = time.perf_counter()
        for number in range(repeat):
            each[number % sets]()
        return (time.perf_counter() - start) / repeat

    return measured


def _flusher() -> Launch:
    memory = np.zeros(_FLUSHED_BYTES, np.uint8)

    def flush() -> None:
        memory[::64] += 1

    return flush
