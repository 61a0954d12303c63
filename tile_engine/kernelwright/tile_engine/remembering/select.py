"""``Dispatcher.select(problem, top_k=3, measure=True)``: measures one problem once, and keeps its plan."""

from __future__ import annotations

import os
import weakref
from pathlib import Path
from typing import Any

from kernelwright.codegen.building.cache_folder import default_cache
from kernelwright.dispatch import Dispatcher, SelectionError
from kernelwright.tile_engine.remembering.measured import SETTINGS, MeasuredSelection

TOP_K = 3
_Key = tuple[str, int]
_measuring: weakref.WeakKeyDictionary[Dispatcher, dict[_Key, tuple[MeasuredSelection, Dispatcher]]] = (
    weakref.WeakKeyDictionary()
)


def select(dispatcher: Dispatcher, problem: Any, top_k: int | None, memory: str | os.PathLike[str] | None) -> None:
    """See :meth:`Dispatcher.select`. Raises SelectionError for a problem that cannot be measured."""
    path = Path(memory) if memory is not None else default_memory()
    selection, measured = _of(dispatcher, TOP_K if top_k is None else top_k, path)
    if selection.record(problem) == (None, None):
        raise SelectionError(
            f"{problem} cannot be measured on {dispatcher.device}: the tile engine poses products, convolutions and"
            " attention of dense operands on CPUs and CUDA devices; leave measure out to select by predicted times"
        )
    dispatcher.keep(problem, measured.plan(problem))


def default_memory() -> Path:
    """``measured.json`` in the cache folder: ``KERNELWRIGHT_CACHE``, else kernelwright's in the user's caches."""
    folder = default_cache()
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "measured.json"


def _of(dispatcher: Dispatcher, top_k: int, memory: Path) -> tuple[MeasuredSelection, Dispatcher]:
    """A selection that measures and ranks like the dispatcher, and a dispatcher that uses it."""
    known = _measuring.setdefault(dispatcher, {})
    key = str(memory), top_k
    if key not in known:
        try:
            ranking = weakref.proxy(dispatcher)  # a value must not keep its key alive
            selection = MeasuredSelection(dispatcher.libraries, memory, dispatcher.device, top_k, ranking, SETTINGS)
        except ValueError as error:
            raise SelectionError(str(error)) from None
        known[key] = selection, Dispatcher(dispatcher.libraries, dispatcher.device, selection)
    return known[key]
