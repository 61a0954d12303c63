"""Compiles that one command can do together, and what the local executor needs to run them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelwright.codegen.actions import Action, RenderedFile

MOST = 8
"""Most kernels of one translation unit. More save little, and a unit of 8 takes half a minute of one processor."""


@dataclass(frozen=True)
class Joined:
    """One command for several compiles.

    ``action`` compiles ``file``, which includes the sources of all, to its only output. ``cut`` divides that output
    into the outputs of the single compiles, byte for byte, by path; UncuttableError if that is not possible for every
    one of them.
    """

    file: RenderedFile
    action: Action
    cut: Callable[[bytes], Mapping[str, bytes]]


@dataclass(frozen=True)
class Batch:
    """Compiles to be done together, at most :data:`MOST`; ``join`` gives the command for any two or more of them.

    ``memory_mb`` is what the command for all of them needs. ``join`` returns None if they cannot be done together.
    """

    members: tuple[Action, ...]
    join: Callable[[Sequence[Action]], Joined | None]
    memory_mb: int


class UncuttableError(ValueError):
    """An output with a part that belongs to no single kernel, or of an unknown form."""


def sizes(count: int, jobs: int) -> list[int]:
    """Return batch sizes for ``count`` compiles of which ``jobs`` run at once: no job waits for a full batch.

    Batches are as equal as possible, and of at most :data:`MOST`.
    """
    batches = max(-(-count // MOST), min(count, jobs))
    return [count // batches + (number < count % batches) for number in range(batches)]
