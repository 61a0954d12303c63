"""What a backend must know: C++ symbols for a template, commands for a kernel, commands for a library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from kernelwright.codegen.plan import Action, KernelPlan
from kernelwright.codegen.spec import Kernel


class Toolchain(Protocol):
    """What compiles and links; every field of it shows in the actions that it makes."""

    @property
    def identity(self) -> str:
        """One line for the manifest that changes whenever the compiler, its version or its flags do."""

    def for_editor(self) -> Toolchain:
        """The same compiles as commands for a clang of an editor, which runs no driver of ours."""


class Backend(Protocol):
    """One family of kernels (``ck_tile``, ``cutlass``, ``cpu``) bound to a toolchain.

    Where kernel plans name a ``report``, a module ``backends/<name>_report.py`` has ``read_report``, which takes the
    bytes of that file (its text for ``ck_tile``) and finds the resources of the manifest (registers, LDS, …) in it.
    """

    @property
    def name(self) -> str:
        """As architecture files and template folders call it."""

    def context(self, kernel: Kernel) -> Mapping[str, object]:
        """Variables of the template ``templates/<name>/<op>.hpp.jinja``: C++ symbols, nothing else."""

    def kernel_plan(self, kernel: Kernel, header: str) -> KernelPlan:
        """Actions from the rendered header (path ``<arch>/<name>.hpp``) to this kernel's objects."""

    def library_actions(self, arch: str, table: str, objects: Sequence[str], library: str) -> tuple[Action, ...]:
        """Compile the rendered kernel table (C, path ``table``) and link it with ``objects`` into ``library``."""

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """Put ``objects`` into the one object ``output``, which ``library_actions`` takes in their place."""
