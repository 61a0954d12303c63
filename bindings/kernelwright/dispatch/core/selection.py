"""A Python function as a selection provider."""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kernelwright.dispatch.core import native, operation
from kernelwright.dispatch.core.errors import SelectionError
from kernelwright.dispatch.core.kernel import Candidate, KernelEntry

_FAILED = 1
ENGINE = "kernelwright.tile_engine.remembering.select"
"""The module that measures kernels; it may not be installed."""

Score = Callable[[Any, Sequence[Candidate]], Sequence[float]]
"""Maps a problem and the pairs of kernel and value that serve it to one score each; the lowest score wins."""


class ScoreCallback:
    """Wraps ``score(problem, candidates) -> scores`` for the native dispatcher, which calls it for each new problem.

    An exception in the function fails the selection in native code; :meth:`raise_pending` re-raises it.
    """

    def __init__(
        self,
        score: Score,
        kernels: Mapping[str, KernelEntry],
    ) -> None:
        """``kernels`` maps identities to the kernels that ``score`` sees, each with the values that it serves."""
        self._score = score
        self._kernels = kernels
        self._candidates: dict[tuple[bytes, int], Candidate] = {}
        self._local = threading.local()  # the native side calls in the thread that selects
        self.native = native.Score(self._call)

    def _call(self, _user: Any, problem: Any, candidates: Any, count: int) -> int:
        try:
            entries = [self._candidate(candidates[i]) for i in range(count)]
            scores = [float(score) for score in self._score(operation.from_native(problem), entries)]
            if len(scores) != count:
                raise SelectionError(f"selection returned {len(scores)} scores for {count} candidates")
            for index, score in enumerate(scores):
                candidates[index].score = score
        except BaseException as error:
            self._local.pending = error
            return _FAILED
        return native.OK

    def _candidate(self, native_one: Any) -> Candidate:
        key = native_one.kernel.contents.identity, native_one.value
        if key not in self._candidates:
            self._candidates[key] = Candidate.of(self._kernels[key[0].decode()], key[1])
        return self._candidates[key]

    def raise_pending(self) -> None:
        """Re-raise the exception that the function raised in this thread, if any."""
        pending: BaseException | None = getattr(self._local, "pending", None)
        self._local.pending = None
        if pending is not None:
            raise pending


def select_measured(dispatcher: Any, problem: Any, top_k: int | None, memory: str | os.PathLike[str] | None) -> None:
    """Have a dispatcher keep the fastest plan of a problem. SelectionError if the tile engine is not installed."""
    try:
        engine = importlib.import_module(ENGINE)
    except ModuleNotFoundError as error:
        raise SelectionError(
            f"measure=True needs kernelwright.tile_engine, which cannot be imported ({error}); install it, or select by"
            " predicted times without measure"
        ) from None
    engine.select(dispatcher, problem, top_k, memory)
