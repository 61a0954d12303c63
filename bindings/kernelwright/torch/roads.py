"""Which road eager calls of each public function take in this process, and why."""

from __future__ import annotations

from kernelwright.torch import public
from kernelwright.torch.road import ROAD


def roads() -> dict[str, str]:
    """By public function ``native``, where eager calls launch known plans from C++, else ``python:`` with the reason.

    A native function still takes the Python road for what only that one knows: the first call of a kind, operands that
    are copied, autocast, transforms, modes and tracers, and dispatchers that are asked for by name.
    """
    return {name: _road(name) for name in public.MODULES}


def _road(name: str) -> str:
    if ROAD.why_not:
        return ROAD.name
    return "native" if name in ROAD.functions else f"python: {name} has no operator in C++"
