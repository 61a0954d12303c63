"""Cost of builds with thousands of kernels to the Pants process that this plugin runs in.

``compat.patches`` and ``compat.dependencies`` change how Pants 2.17 works; newer versions need no change. All of it
depends on ``[kernelwright-performance].tune_daemon``; without it, builds give the same results and take longer.
``peek`` prints every field of every target on all versions: :class:`WholeKernel` prints an identity instead of a whole
spec.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from kernelwright.pants.compat import patches, rule
from kernelwright.pants.subsystems.performance import PerformanceSubsystem
from pants.engine.rules import collect_rules
from pants.util.logging import LogLevel


@dataclass(frozen=True)
class Tuning:
    """Whether this process is tuned."""

    on: bool


@rule(desc="Tune the Pants process", level=LogLevel.DEBUG)
async def tune(performance: PerformanceSubsystem) -> Tuning:
    if performance.tune_daemon:
        patches.tune_process()
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
        # Another version of the generator may write the same kernel differently.
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
