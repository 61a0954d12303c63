"""Compiles that one command can do together, and what the local executor must know to run them so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from kernelwright.codegen.actions import Action, RenderedFile

MOST = 8
"""Kernels of one translation unit. More save little, and a unit of 8 takes half a minute of one processor."""


@dataclass(frozen=True)
class Joined:
    """One command for several compiles.

    ``action`` compiles ``file``, which includes the sources of all, to its only output. ``cut`` makes of that output
    what each compile alone would have written to its only output, byte for byte, by its path; UncuttableError if that
    cannot be said of every one of them.
    """

    file: RenderedFile
    action: Action
    cut: Callable[[bytes], Mapping[str, bytes]]


@dataclass(frozen=True)
class Batch:
    """Compiles to be done together, at most :data:`MOST`; ``join`` gives the command for any two or more of them.

    ``memory_mb`` is what the command for all of them needs. ``join`` gives None where they cannot be done together.
    """

    members: tuple[Action, ...]
    join: Callable[[Sequence[Action]], Joined | None]
    memory_mb: int


class UncuttableError(ValueError):
    """An output in which something belongs to no kernel alone, or that is not of a form known here."""


def sizes(count: int, jobs: int) -> list[int]:
    """How many of ``count`` compiles to do together where ``jobs`` run at once: nobody waits for a full batch.

    The batches are as equal as they can be, and of at most :data:`MOST`.
    """
    batches = max(-(-count // MOST), min(count, jobs))
    return [count // batches + (number < count % batches) for number in range(batches)]
