"""Speed tuning of the Pants process that this plugin runs in, for workspaces with thousands of kernels.

All of it depends on ``[kernelwright-performance].tune_daemon``; without it every build gives the same results and takes
longer. The figures are from docs/benchmarks.md, "Ten thousand kernel targets" (``benchmarks/build/scale.py``).

* Memory. Each run of a goal over 10,000 targets allocates several hundred megabytes of short-lived objects. By default
  glibc returns that memory to the system at the end of the run and asks for it again, page by page, in the next one,
  which took a fifth of a run of ``peek``. See :func:`keep_memory`.
* Garbage collection. Python's collector walks over all long-lived objects of the daemon while it looks for cycles,
  which took half a second in one run of five. See :func:`collect_less_often`.
* Hashes and dependencies, where the running Pants needs it: see ``compat.patches`` and ``compat.dependencies``.
* ``peek`` prints every field of every target. :class:`WholeKernel` prints an identity instead of a whole spec.
"""

from __future__ import annotations

import ctypes
import gc
from dataclasses import dataclass
from typing import Optional

from kernelwright.pants.compat import patches, rule
from kernelwright.pants.subsystems.performance import PerformanceSubsystem
from pants.engine.rules import collect_rules
from pants.util.logging import LogLevel

# mallopt(3), of glibc only.
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_KEPT_BYTES = 256 << 20
_MMAP_BYTES = 32 << 20  # the largest threshold that glibc accepts

_FIRST_GENERATION = 50_000


def keep_memory() -> None:
    """Let this process keep up to 256 MiB of free memory."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_TOP_PAD, _MMAP_BYTES)
        mallopt(_MMAP_THRESHOLD, _MMAP_BYTES)
        mallopt(_ARENA_MAX, 1)


def collect_less_often() -> None:
    """Let the collector start after 50,000 new objects instead of 700."""
    gc.set_threshold(_FIRST_GENERATION, *gc.get_threshold()[1:])


@dataclass(frozen=True)
class Tuning:
    """Whether this process is tuned."""

    on: bool


@rule(desc="Tune the Pants process", level=LogLevel.DEBUG)
async def tune(performance: PerformanceSubsystem) -> Tuning:
    if performance.tune_daemon:
        keep_memory()
        collect_less_often()
        patches.hash_file_requests()
    return Tuning(performance.tune_daemon)


class WholeKernel(str):
    """A kernel's identity that carries its canonical JSON.

    ``expansion`` is the same for all kernels of a set, and None if they do not share their dependencies.
    """

    canonical: str
    expansion: Optional[str]

    def __new__(cls, identity: str, canonical: str, expansion: Optional[str]) -> WholeKernel:
        self = super().__new__(cls, identity)
        self.canonical = canonical
        self.expansion = expansion
        return self

    def __eq__(self, other: object) -> bool:
        # Another version of the generator may write the same kernel in another way.
        return (
            isinstance(other, WholeKernel)
            and super().__eq__(other)
            and (self.canonical, self.expansion) == (other.canonical, other.expansion)
        )

    def __ne__(self, other: object) -> bool:  # str has its own
        return not self == other

    __hash__ = str.__hash__


def rules() -> list[object]:
    return [*collect_rules()]
