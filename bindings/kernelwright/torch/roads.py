"""The road that eager calls of each public function take in this process, and why."""

from __future__ import annotations

from kernelwright.torch import public
from kernelwright.torch.road import ROAD


def roads() -> dict[str, str]:
    """Map each public function to ``native`` if eager calls launch known plans from C++, else ``python:`` and why.

    A native function still takes the Python road for the first call of a kind, operands that are copied, autocast,
    transforms, modes and tracers, and dispatchers requested by name.
    """
    return {name: _road(name) for name in public.MODULES}


def _road(name: str) -> str:
    if ROAD.why_not:
        return ROAD.name
    return "native" if name in ROAD.functions else f"python: {name} has no operator in C++"
