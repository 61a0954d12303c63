from __future__ import annotations

import gc
import resource
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tilewright.pants import daemon


def young_objects_and_page_faults(tuned: bool) -> tuple[int, int]:
    """How many young objects make a collection, and the page faults of an object of 20 MiB that is not the first."""
    if tuned:
        daemon.tune()
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        bytearray(b"x" * (20 << 20))
    return gc.get_threshold()[0], resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def ask(tuned: bool) -> tuple[int, int]:
    """The answer of a new process, whose memory has no history."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(young_objects_and_page_faults, tuned).result()


def test_memory_is_kept_for_the_next_run() -> None:
    assert ask(tuned=False)[1] > 4000
    assert ask(tuned=True)[1] < 100


def test_garbage_is_collected_less_often() -> None:
    assert ask(tuned=True)[0] > 50 * ask(tuned=False)[0]
