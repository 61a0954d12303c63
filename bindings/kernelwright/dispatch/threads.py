"""Choice of the thread pool for CPU launches, for the whole process.

OpenMP workers spin for work after each torch call and take cores from all other threads; launches on the same workers
lose nothing to them. But each such launch waits for all workers, and if threads of a third library spin, as NumPy's do,
that takes many times as long (docs/benchmarks.md). So launches use the dispatcher's own threads unless
:func:`kernelwright.torch.use` or :func:`use_threads` says otherwise.
"""

from __future__ import annotations

import ctypes
from typing import Literal, NamedTuple

from kernelwright.dispatch.core import native
from kernelwright.dispatch.core.errors import SelectionError

Source = Literal["auto", "own", "openmp"]

_ASKED = {"auto": 0, "own": 1, "openmp": 2}
_USED = {1: "own", 2: "openmp", 3: "callback"}
_chosen = False  # by use_threads


class Threads(NamedTuple):
    """The thread pool in use."""

    source: str
    """``own``, ``openmp`` or ``callback`` (an application's, through the C API)."""
    runtime: str
    """Path of the OpenMP runtime; empty otherwise."""


def use_threads(source: Source = "auto") -> Threads:
    """Choose the thread pool for CPU launches, for the whole process.

    :param source: ``own``: the dispatcher's threads, as many as :meth:`Dispatcher.set_num_threads`,
        ``KERNELWRIGHT_NUM_THREADS`` or the affinity mask allow; ``openmp``: those of the loaded OpenMP runtime, torch's
        if there are several, also limited by ``torch.set_num_threads`` and ``OMP_NUM_THREADS``; ``auto``: the latter if
        a runtime is loaded now, else the former. A forked child uses its own threads if its parent used OpenMP's.
    :raises SelectionError: for another source, or ``openmp`` if no runtime is loaded or in a forked child.
    """
    global _chosen
    if source not in _ASKED:
        raise SelectionError(f"threads of {source!r}; allowed: {', '.join(_ASKED)}")
    native.check(native.library().kw_set_threads(_ASKED[source], None), SelectionError)
    _chosen = source != "auto"
    return threads_in_use()


def threads_in_use() -> Threads:
    """The thread pool that the next launch runs on."""
    runtime = ctypes.c_char_p()
    source = native.library().kw_threads_in_use(ctypes.byref(runtime))
    return Threads(_USED[source], (runtime.value or b"").decode(errors="replace"))


def share_with_torch() -> None:
    """Use the OpenMP runtime if one is loaded, unless :func:`use_threads` has chosen another source."""
    if not _chosen:
        native.check(native.library().kw_set_threads(0, None))
