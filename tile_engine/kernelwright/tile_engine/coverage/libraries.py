"""A dispatcher that plans with libraries of an architecture that this machine may lack."""

from __future__ import annotations

from collections.abc import Sequence

from kernelwright.dispatch import Device, Dispatcher, KernelLibrary
from kernelwright.dispatch.loading.manifest import backend_kind


def planner(libraries: Sequence[KernelLibrary]) -> Dispatcher:
    """Return a dispatcher that plans and explains without a GPU. ValueError for libraries of several architectures.

    :raises ArchMismatchError: for a CPU library that this processor cannot run: planning executes library code.
    """
    archs = sorted({library.arch for library in libraries})
    if len(archs) != 1:
        raise ValueError(f"the libraries are for {' and '.join(archs)}; allowed: one architecture at a time")
    kind = backend_kind(libraries[0].manifest.backend)
    return Dispatcher(libraries, Device("cpu") if kind == "cpu" else Device(f"{kind}:0", arch=archs[0]))
