"""Actions and the compile plan that they form: commands that turn rendered files into objects and libraries.

The same plan is run by Pants (one sandboxed process per action) and by the local executor. An action sees exactly its
inputs, its trees and its environment; paths are relative to the working directory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import PurePosixPath

from kernelwright.codegen.trees import all_trees, find_tree
from kernelwright.codegen.violations import SpecError

MAX_PATH = 1024
"""The longest path of a plan in bytes; each of its parts may have 255: the limits of Linux file systems."""


@dataclass(frozen=True)
class Action:
    """One command.

    ``inputs`` are rendered files or outputs of other actions. ``trees`` are read-only folders by name, each found at
    ``__<name>`` (see :mod:`kernelwright.codegen.trees`). ``caches`` are append-only folders at ``__cache_<name>``.
    ``memory_mb`` is the peak resident size measured for such a command, ``seconds`` roughly its processor time: neither
    changes the outputs. ``argv`` may start with ``__python``, which stands for the generator's own Python (see
    :mod:`kernelwright.codegen.toolchains.python`). ``source`` is the C or C++ file that the command compiles, None for
    other commands.
    """

    id: str
    description: str
    argv: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    trees: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    caches: tuple[str, ...] = ()
    memory_mb: int = 256
    seconds: float = 0.2
    source: str | None = None

    def __post_init__(self) -> None:
        """Raise SpecError for an unknown tree: it would be mounted nowhere, and only a compiler would notice."""
        if unknown := [name for name in self.trees if find_tree(name) is None]:
            raise SpecError(
                f"action {self.id!r} reads the trees {', '.join(map(repr, unknown))}, which there are not; allowed: "
                f"{', '.join(all_trees())}"
            )


@dataclass(frozen=True)
class RenderedFile:
    """Generated text and its path, relative to the working directory."""

    path: str
    text: str


@dataclass(frozen=True)
class KernelActions:
    """The actions that turn one kernel into the objects that a library links.

    ``report`` names the output (if any) from which the manifest reads resource usage, ``counts`` the JSON file (if any)
    with the counts of its code.
    """

    files: tuple[RenderedFile, ...]
    actions: tuple[Action, ...]
    objects: tuple[str, ...]
    report: str | None = None
    counts: str | None = None


@dataclass(frozen=True)
class LinkGroup:
    """The action that combines the objects of some kernels, given by name, into one object for the link."""

    action: Action
    kernels: tuple[str, ...]


@dataclass(frozen=True)
class CompilePlan:
    """The files and actions that turn all kernels of one library and architecture into its shared object.

    ``files`` and ``actions`` are those of the table and the link; the kernels bring their own. A large library has
    ``groups``, and its link takes the groups' objects in place of the kernels'.
    """

    files: tuple[RenderedFile, ...]
    actions: tuple[Action, ...]
    library: str
    kernels: tuple[KernelActions, ...] = field(default=())
    groups: tuple[LinkGroup, ...] = field(default=())

    @property
    def all_files(self) -> tuple[RenderedFile, ...]:
        """The files of the kernels, then the library's own."""
        return (*(file for kernel in self.kernels for file in kernel.files), *self.files)

    @property
    def all_actions(self) -> tuple[Action, ...]:
        """The actions of the kernels, those of the groups, then the library's own."""
        kernels = (action for kernel in self.kernels for action in kernel.actions)
        return (*kernels, *(group.action for group in self.groups), *self.actions)


def checked_path(path: str, what: str) -> str:
    """Return ``path`` if a plan may name a file so; otherwise raise SpecError, whose message starts with ``what``.

    Paths are relative, in their shortest spelling, within the working directory, and not taken by any compiler for an
    option (``-x``), a response file (``@x``) or a tree (``__x``).
    """
    parts = path.split("/")
    encoded = [part.encode("utf-8", "surrogatepass") for part in parts]
    for wrong, why in (
        (not path, "is empty"),
        (path.startswith("/"), "is absolute"),
        (".." in parts, "leaves the working directory"),
        (not path.isprintable(), "has an unprintable character"),
        (str(PurePosixPath(path)) != path, "is not in its shortest spelling"),
        (path.startswith(("-", "@", "__")), f"starts with {path[:2]!r}, which compilers read as something else"),
        (sum(map(len, encoded)) + len(parts) > MAX_PATH or max(map(len, encoded)) > 255, "is too long"),
    ):
        if wrong:
            raise SpecError(f"{what} {path[:80]!r} {why}; allowed: a relative path below the root, such as 'a/b.c'")
    return path
