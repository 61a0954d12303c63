"""Speed tuning of the Pants process that this plugin runs in, for workspaces with thousands of kernels.

All of it depends on ``[kernelwright-performance].tune_daemon``; without it every build gives the same results and takes
longer. The figures are from docs/benchmarks.md, "Ten thousand kernel targets" (``benchmarks/build/scale.py``).

* Memory. Each run of a goal over 10,000 targets allocates several hundred megabytes of short-lived objects. By default
  glibc returns that memory to the system at the end of the run and asks for it again, page by page, in the next one,
  which took a fifth of a run of ``peek``. See :func:`keep_memory`.
* Garbage collection. Python's collector walks over all long-lived objects of the daemon while it looks for cycles,
  which took half a second in one run of five. See :func:`collect_less_often`.
* Hashes. Pants 2.17.1 gives all of its collections the same hash, so each new ``CreateDigest`` was compared with every
  former one, which took a second for each hundred kernels in a build of thousands. See :func:`hash_file_requests`.
* Dependencies. Pants resolves the dependencies of each target anew in every run, with four nodes of its graph for each
  target. The kernels of a set have none, so they share one question. See :class:`SharedDependenciesField`.
* ``peek`` prints every field of every target. :class:`WholeKernel` prints an identity instead of a whole spec.
"""

from __future__ import annotations

import ctypes
import gc
from dataclasses import dataclass
from typing import Any, Optional

from kernelwright.pants.subsystems.performance import PerformanceSubsystem
from pants.engine.addresses import Address
from pants.engine.fs import CreateDigest
from pants.engine.rules import collect_rules, rule
from pants.engine.target import Dependencies, InvalidFieldException
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


def hash_file_requests() -> None:
    """Let requests for files have hashes of their contents; Pants 2.17.1 hashes their type ``typing.Tuple``."""
    CreateDigest.__hash__ = tuple.__hash__  # type: ignore[assignment,method-assign]


@dataclass(frozen=True)
class Tuning:
    """Whether this process is tuned."""

    on: bool


@rule(desc="Tune the Pants process", level=LogLevel.DEBUG)
async def tune(performance: PerformanceSubsystem) -> Tuning:
    if performance.tune_daemon:
        keep_memory()
        collect_less_often()
        hash_file_requests()
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


class Expansion(tuple):  # type: ignore[type-arg]
    """No dependencies, of the kernels of one expansion."""

    name: str

    def __new__(cls, name: str) -> Expansion:
        self = super().__new__(cls)
        self.name = name
        return self


class SharedDependenciesField(Dependencies):
    """The dependencies of a kernel of a set, which are none; equal for all kernels of the set.

    Equal fields are one question, which Pants answers once for a set, for the kernel that comes first. The expansion
    is part of the question, so that this kernel still exists whenever the question is asked again.
    """

    value: Expansion

    @classmethod
    def compute_value(cls, raw_value: Optional[Any], address: Address) -> Expansion:
        if not isinstance(raw_value, str):
            raise InvalidFieldException(f"{address}: the kernels of a set have no dependencies")
        return Expansion(raw_value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SharedDependenciesField) and self.value.name == other.value.name

    def __hash__(self) -> int:
        return hash(self.value.name)


def rules() -> list[object]:
    return [*collect_rules()]
