"""How the Pants daemon keeps its memory, with thousands of targets.

Each run of a goal over 10,000 targets makes some hundred megabytes of short-lived objects. By default glibc gives such
memory back to the system at the end of a run and asks for it, page by page, in the next one; and Python walks over all
objects of the daemon, which live for long, looking for cycles. The first took a fifth of a run of `peek`, the second
half a second of one run in five (docs/benchmarks.md).
"""

from __future__ import annotations

import ctypes
import gc

# mallopt(3), of glibc only.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_KEPT_BYTES = 256 << 20
_MMAP_BYTES = 32 << 20  # the most that glibc takes

_YOUNG_OBJECTS = 50_000


def tune() -> None:
    """Let this process keep up to 256 MiB of free memory, and collect garbage a seventieth as often."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_TOP_PAD, _MMAP_BYTES)
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_ARENA_MAX, 1)
    gc.set_threshold(_YOUNG_OBJECTS, *gc.get_threshold()[1:])
