"""Speed tuning of the process of Pants 2.17, for workspaces with thousands of kernels.

The figures are of 10,000 kernels (docs/benchmarks.md, "Ten thousand kernel targets"; ``benchmarks/build/scale.py``).
"""

from __future__ import annotations

import sys

assert sys.version_info < (3, 11), "for Pants 2.17"

import ctypes
import gc

from pants.engine.fs import CreateDigest

# mallopt(3), of glibc only.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_KEPT_BYTES = 256 << 20
_MMAP_BYTES = 32 << 20  # the largest threshold that glibc accepts

_FIRST_GENERATION = 50_000


def tune_process() -> None:
    """All of it. A daemon that has been tuned stays so until it ends."""
    keep_memory()
    collect_less_often()
    hash_file_requests()


def keep_memory() -> None:
    """Let this process keep up to 256 MiB of free memory.

    Each run of a goal over 10,000 targets allocates several hundred megabytes of short-lived objects. glibc returns
    that memory to the system at the end of the run and asks for it again, page by page, in the next one, which took a
    fifth of a run of ``peek``.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_TOP_PAD, _MMAP_BYTES)
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_ARENA_MAX, 1)


def collect_less_often() -> None:
    """Let the collector start after 50,000 new objects instead of 700.

    It walks over all long-lived objects of the daemon while it looks for cycles, which took half a second in one run of
    five.
    """
    gc.set_threshold(_FIRST_GENERATION, *gc.get_threshold()[1:])


def hash_file_requests() -> None:
    """Let requests for files have hashes of their contents; Pants 2.17.1 hashes their type ``typing.Tuple``.

    Each new request was compared with every former one: 1.06 CPU s for 2,000 of them, which grows with the square, and
    0.003 s with this (``benchmarks/build/patches.py``).
    """
    CreateDigest.__hash__ = tuple.__hash__  # type: ignore[assignment,method-assign]
