"""Libraries on a device: select the best kernel for a problem and run it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any, Protocol

from kernelwright.dispatch.arrays.trials import try_torch
from kernelwright.dispatch.core import simulated
from kernelwright.dispatch.core.device import Device
from kernelwright.dispatch.core.errors import ArchMismatchError, LibraryNotFoundError, SelectionError
from kernelwright.dispatch.core.kernel import KernelEntry, Selection, count_of
from kernelwright.dispatch.core.native_dispatcher import NativeDispatcher
from kernelwright.dispatch.core.operation import Problem
from kernelwright.dispatch.core.plan import OperationPlan
from kernelwright.dispatch.core.selection import Score, select_measured
from kernelwright.dispatch.loading.heuristic import Heuristic
from kernelwright.dispatch.loading.library import KernelLibrary
from kernelwright.dispatch.operation_methods import OperationMethods
from kernelwright.dispatch.recording.recorder import record_if_asked

Library = KernelLibrary | str | os.PathLike[str]


class Fallback(Protocol):
    """Makes libraries for problems that no kernel of a dispatcher serves."""

    def library_for(self, problem: Any) -> KernelLibrary:
        """A library with a kernel that serves a problem. Raises NoKernelError if there is none."""


class Dispatcher(OperationMethods):
    """Selects and launches kernels. Threads may share a dispatcher; several may exist at once.

    :param libraries: one library or several, loaded ones or paths.
    :param device: a :class:`Device` or its name.
    :param selection: ``"auto"`` (the learned models that come with the libraries; lowest predicted time for problems
        that none of them ranks), ``"analytic"`` (lowest predicted time), ``"first_fit"`` (highest priority, then name),
        the name or identity of one kernel (in plans of several stages, the other stages get the kernels of lowest
        predicted time), a function that maps a problem and its candidates (a sequence of :class:`Candidate`) to one
        score each, of which the lowest wins, or a :class:`Heuristic`, a learned model.
    :param fallback: makes a library for a problem that no kernel serves, such as a :class:`kernelwright.jit.Registry`
        for the same device, which compiles it and reports that in a line on stderr. The library stays in this
        dispatcher.
    :raises ArchMismatchError: for a library of another kind or architecture than the device.
    :raises LibraryLoadError: for a library that the native dispatcher refuses, such as one with a kernel that shares
        its name with a kernel of another library but not its identity.
    :raises LibraryNotFoundError: if ``libraries`` is empty.
    :raises SelectionError: for an unknown selection.
    :raises TypeError: for a ``fallback`` that cannot make libraries.

    Libraries may share kernels, as a wheel and a library of :mod:`kernelwright.jit` do: the first library's copy of
    each identity is kept. The models of all libraries are consulted in the order of the libraries, and each ranks the
    kernels of all of them.

    A CPU library is checked against the machine at once, a GPU library at its first launch: selecting and explaining
    touch no GPU.
    """

    def __init__(
        self,
        libraries: Iterable[Library] | Library,
        device: Device | str = "cpu",
        selection: str | Score | Heuristic = "auto",
        *,
        fallback: Fallback | None = None,
    ) -> None:
        """Load libraries given as paths and register every kernel."""
        try_torch()
        self.device = Device.of(device)
        self.libraries = tuple(_loaded(libraries))
        if fallback is not None and not callable(getattr(fallback, "library_for", None)):
            allowed = "a kernelwright.jit.Registry, or what has its method library_for"
            raise TypeError(f"fallback is a {type(fallback).__name__}; allowed: {allowed}")
        if not self.libraries:
            raise LibraryNotFoundError("libraries is empty; allowed: one KernelLibrary or more")
        for library in self.libraries:
            _check_kind(library, self.device)
        kernels: dict[str, KernelEntry] = {}
        for library in self.libraries:
            for kernel in library.kernels:
                kernels.setdefault(kernel.identity, kernel)  # as the native dispatcher keeps the first copy
        record_if_asked()
        self._core = NativeDispatcher(self.device, kernels, [library.descriptor for library in self.libraries])
        self._core.select_by(selection)
        self._fallback = fallback
        if fallback is not None:
            self._core.ask_for_more(self._add_for)
        self._begin()

    def _add_for(self, problem: Problem) -> None:
        assert self._fallback is not None
        library = self._fallback.library_for(problem)
        _check_kind(library, self.device)
        self._core.add({kernel.identity: kernel for kernel in library.kernels}, library.descriptor)
        self.libraries = (*self.libraries, library)

    def __repr__(self) -> str:
        """Device, libraries and their total number of kernels."""
        names = ", ".join(f"{library.name} for {library.arch}" for library in self.libraries[:4])
        more = f" and {len(self.libraries) - 4} more" if len(self.libraries) > 4 else ""
        return f"<Dispatcher on {self.device}: {names}{more}, {count_of(len(self._core.kernels), 'kernel')}>"

    @property
    def kernels(self) -> tuple[KernelEntry, ...]:
        """Kernels of all libraries, each once."""
        return tuple(self._core.kernels.values())

    def set_priority(self, kernel: str | KernelEntry, priority: int) -> None:
        """Set a kernel's priority in first-fit selection and in ties: higher first, default 0.

        :raises SelectionError: for an unknown name or identity, or a priority that is not a 32-bit integer.
        """
        self._core.set_priority(kernel.identity if isinstance(kernel, KernelEntry) else kernel, priority)

    def set_num_threads(self, threads: int) -> None:
        """Limit the threads of CPU launches for the whole process, not just for this dispatcher.

        The limit belongs to the loaded library files: it applies to every dispatcher and plan of the process that uses
        a CPU library of this dispatcher, in all threads, until it is set again. Plans made under a lower limit keep it.
        GPU libraries ignore it.

        :param threads: maximum number of threads of one launch; 0 for the value of the environment variable
            ``KERNELWRIGHT_NUM_THREADS``, or without it the number of CPUs in the affinity mask.
        :raises SelectionError: for a negative number, or one above a library's limit.
        """
        self._core.set_num_threads(threads)

    def select(
        self,
        problem: Problem,
        *,
        measure: bool = False,
        top_k: int | None = None,
        memory: str | os.PathLike[str] | None = None,
    ) -> Selection:
        """Return the kernel that would run, and why; with ``measure``, the fastest of the ``top_k`` ranked first.

        Measuring checks and times the best few pairs of a kernel and a value of what the problem leaves open (slices of
        a sum, splits of keys) in this process, on operands of its own, once: the file ``memory`` keeps the times for
        this device, driver and library, and processes share it. From then on, plans and calls of this dispatcher use
        the fastest pair for this problem.

        :param top_k: number of pairs to time, by default 3.
        :param memory: by default ``measured.json`` in the cache folder of kernelwright.
        :raises NoKernelError: if no kernel serves the problem.
        :raises SelectionError: with ``measure`` if ``kernelwright.tile_engine`` is not installed or cannot time the
            problem or the device, or if none of the kernels computes a correct result; for ``top_k`` or ``memory``
            without ``measure``.
        """
        if measure:
            select_measured(self, problem, top_k, memory)
        elif top_k is not None or memory is not None:
            raise SelectionError("top_k and memory say what is measured; allowed: with measure=True, or neither")
        return self._core.plan(problem).selection

    def keep(self, problem: Problem, plan: OperationPlan[Any]) -> None:
        """Use a plan of another dispatcher with the same libraries and device for this problem from now on.

        Selection does not replace it; setting a priority does.
        """
        self._core.keep(problem, plan)

    def export_json(self) -> str:
        """Libraries and kernels in first-fit order, as JSON."""
        return self._core.export_json()


def _loaded(libraries: Iterable[Library] | Library) -> Iterable[KernelLibrary]:
    if isinstance(libraries, KernelLibrary | str | os.PathLike):
        libraries = [libraries]
    for library in libraries:
        yield library if isinstance(library, KernelLibrary) else KernelLibrary.load(library)


def _check_kind(library: KernelLibrary, device: Device) -> None:
    if device.simulated:
        simulated.check_library(library.path, library.descriptor)
    if library.kind != device.library_kind:
        raise ArchMismatchError(
            f"{library.path} is for {library.manifest.target} and runs on {library.kind}; device is {device}"
        )
