"""The interface of a backend: commands for a kernel and commands for a library. Operations provide the symbols."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from kernelwright.arch import Arch
from kernelwright.codegen.actions import Action, KernelActions
from kernelwright.codegen.batching.batch import Joined
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.toolchains.host import Command, HostToolchain
from kernelwright.codegen.trees import tree_of


class Toolchain(Protocol):
    """A compiler and linker; each of its fields shows in the actions that it makes."""

    @property
    def identity(self) -> str:
        """One line for the manifest that changes whenever the compiler, its version or its flags do."""

    def for_editor(self) -> Toolchain:
        """The same toolchain with commands for an editor's clang, which runs none of our drivers."""


class Backend(Protocol):
    """One family of kernels (``ck_tile``, ``cutlass``, ``cpu``) bound to a toolchain.

    Where the actions of a kernel name a ``report``, :mod:`kernelwright.codegen.resources.readers` finds the resources
    of the manifest (registers, LDS, …) in it.
    """

    @property
    def name(self) -> str:
        """The name that architecture files and operations use."""

    @property
    def host(self) -> HostToolchain:
        """The toolchain that compiles the C sources of a library and links it."""

    def kernel_actions(self, kernel: Kernel, arch: Arch, header: str) -> KernelActions:
        """Actions from the rendered header (path ``<arch>/<name>.hpp``) to this kernel's objects.

        The other files that the operation's templates produce lie beside the header.
        """

    def library_actions(
        self, arch: Arch, table: str, objects: Sequence[str], library: str, operations: Sequence[str]
    ) -> tuple[Action, ...]:
        """Compile the rendered kernel table (C, path ``table``) and link it with ``objects`` into ``library``.

        ``operations`` are the operations of the library's kernels, whose launchers it contains.
        """

    def group_action(self, objects: Sequence[str], output: str) -> Action:
        """Combine ``objects`` into the one object ``output``, which ``library_actions`` takes in their place."""

    def join(self, kernels: Sequence[Kernel], arch: Arch, headers: Sequence[str]) -> Joined | None:
        """Return one command that compiles several kernels of one operation for ``arch``.

        None if a compiler's output cannot be cut into the kernels' own parts.
        """


def one_compile(command: Command, kernel: Kernel, header: str, output: str) -> KernelActions:
    """The actions of a kernel whose only output is an object, which is the report too."""
    action = command.action(f"compile {output}", f"Compile {kernel.name} for {kernel.arch}", [header], [output])
    return KernelActions(files=(), actions=(action,), objects=(output,), report=output)


def launcher_sources(operations: Iterable[str], backend: str) -> dict[str, str]:
    """The launcher sources that operations add to a library: path by name.

    ValueError if two operations give different sources the same name.
    """
    sources: dict[str, str] = {}
    for name in operations:
        for source, path in operation(name).on_backend(backend).sources.items():
            if sources.setdefault(source, path) != path:
                raise ValueError(f"two operations name a launcher source {source!r}: {sources[source]} and {path}")
    return sources


def source_trees(source: str, *trees: str) -> tuple[str, ...]:
    """Trees that the compile of a launcher source sees: ``trees``, shared ones and the source's own tree, each once."""
    return tuple(dict.fromkeys((*trees, "widths", "shared_launcher", tree_of(source))))


def launcher_trees(operations: Iterable[str], backend: str) -> tuple[str, ...]:
    """The header trees that the launchers of operations see besides the backend's own, each once."""
    parts = [operation(name).on_backend(backend) for name in operations]
    return tuple(dict.fromkeys(tree for part in parts for tree in (*part.launcher_trees, *part.trees)))
