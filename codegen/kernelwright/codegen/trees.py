"""The read-only folders that actions mount: their names and contents."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelwright.codegen.registry import OPERATIONS, lookup, operation_names
from kernelwright.codegen.violations import SpecError


@dataclass(frozen=True)
class Tree:
    """A tree. ``parts`` are the folders and files below the root that actions may see; ``*`` matches any part of a
    name.

    ``may_lack`` are further parts, which need not exist. A tree that is ``made_of`` another one, given by name, has no
    folder of its own: builds generate its files from the other's (:mod:`kernelwright.codegen.lean`). ``backend`` is the
    one whose kernels or launchers see the tree; None if all do. ``license`` is the SPDX expression of what libraries
    contain of it; None if it has only tools and headers that leave nothing behind.
    """

    about: str
    parts: tuple[str, ...]
    made_of: str | None = None
    may_lack: tuple[str, ...] = ()
    backend: str | None = None
    license: str | None = None

    @property
    def globs(self) -> tuple[str, ...]:
        """Patterns of all files of the tree, relative to its root; ``**`` matches any folders."""
        return tuple(part if part.endswith(".h") else f"{part}/**" for part in (*self.parts, *self.may_lack))

    @property
    def own(self) -> bool:
        """Whether the tree holds the project's own headers and sources, not a toolchain's."""
        return all(part.startswith(("include/kernelwright/", "launchers/")) for part in self.parts)

    def tops(self, root: Path) -> dict[str, Path]:
        """The files and folders of the parts below ``root``, by their path in it. SpecError if it lacks a part."""
        by_path: dict[str, Path] = {}
        for part in (*self.parts, *self.may_lack):
            matches = sorted(root.glob(part))
            if not matches and part in self.parts:
                raise SpecError(f"tree folder {root} has no {part}")
            by_path.update({str(match.relative_to(root)): match for match in matches})
        return by_path


def _own(about: str, *parts: str, may_lack: tuple[str, ...] = (), backend: str | None = None) -> Tree:
    """A tree of the project's own headers."""
    folder = "include/kernelwright"
    shown, further = (tuple(f"{folder}/{part}" for part in some) for some in (parts, may_lack))
    return Tree(about, shown, may_lack=further, backend=backend, license="MIT")


# Suffix of the names of launcher trees.
_LAUNCHER = "_launcher"
# For each backend: the folder of its sources, and the prefix of its source trees' names ("cuda" is NVIDIA's own).
_SOURCES = {"cpu": ("cpu", "cpu"), "ck_tile": ("hip", "hip"), "cutlass": ("cuda", "cuda_src")}


def _sources(name: str, backend: str) -> tuple[tuple[str, Tree], tuple[str, Tree]]:
    """Two trees of sources for a backend: what kernels see, and what libraries link once and kernels never include.

    Therefore an edit of a launcher recompiles no kernel.
    """
    folder, prefix = _SOURCES[backend]
    about, part = f"launchers of {folder} libraries: {name}", f"launchers/{folder}/{name}"
    return (
        (f"{prefix}_{name}", _own(f"{name} kernels of {folder} libraries", f"{folder}/{name}", backend=backend)),
        (f"{prefix}_{name}{_LAUNCHER}", Tree(about, (part,), backend=backend, license="MIT")),
    )


TREES: Mapping[str, Tree] = {
    "zig": Tree("the ziglang wheel: compiler, linker, libc and libc++ headers", ("ziglang",)),
    "clang": Tree("clang's own headers, from the clang-tidy wheel", ("clang_tidy/data/lib/clang/22/include",)),
    "ck_tile": Tree(
        "CK Tile's headers, from the amd-aiter wheel",
        ("aiter_meta/3rdparty/composable_kernel/include",),
        license="MIT",
    ),
    "ck_tile_lean": Tree("those of CK Tile's headers that are rewritten to compile faster", ("include",), "ck_tile"),
    "cutlass": Tree(
        "CUTLASS's headers, from the nvidia-cutlass wheel",
        ("cutlass_library/source/include", "cutlass_library/source/tools/util/include"),
        license="BSD-3-Clause",
    ),
    "cutlass_lean": Tree("those of CUTLASS's headers that are rewritten to compile faster", ("include",), "cutlass"),
    "flashinfer": Tree(
        "FlashInfer's headers, from the flashinfer-python wheel",
        ("flashinfer/data/include/flashinfer",),
        license="Apache-2.0",
    ),
    "flashinfer_edited": Tree(
        "those of FlashInfer's headers that clang compiles only after an edit", ("include",), "flashinfer"
    ),
    "cuda": Tree(
        "CUDA's headers, ptxas, nvcc and static runtime, from the nvidia wheels",
        ("nvidia/cu13",),
        license="LicenseRef-NVIDIA-CUDA-EULA",
    ),
    "abi": _own("the C ABI that all operations share", "abi.h", "checks.h", "dtypes.h", "epilogue.h"),
    "widths": _own("arithmetic of launchers that cannot overflow unseen", "widths.h", "rules.h"),
    f"shared{_LAUNCHER}": Tree("what launchers of all backends share", ("launchers/common",), license="MIT"),
    "dispatcher": _own(
        "the C ABI of all operations and the dispatcher's own headers", "*.h", "dispatcher", may_lack=tuple(OPERATIONS)
    ),
    **{name: tree for backend in _SOURCES for name, tree in _sources("common", backend)},
}
"""The trees of the toolchains, and those that all operations share."""


@functools.cache
def _trees_of(operation: Any) -> Mapping[str, Tree]:
    """Return the trees of an operation, which follow from its name, its backends and the location of its files.

    ``<op>`` holds its C ABI, ``cpu_<op>``, ``hip_<op>`` and ``cuda_src_<op>`` the kernels of each of its backends, and
    ``…_launcher`` the launchers, where the backend's part names sources.
    """
    op = operation.name
    trees = {op: _own(f"the C ABI of {op}", f"{op}.h", may_lack=(op,))}
    for backend in operation.backends:
        if backend in _SOURCES:
            kernels, launchers = _sources(op, backend)
            trees.update([kernels, launchers] if operation.on_backend(backend).sources else [kernels])
    return trees


def all_trees() -> dict[str, Tree]:
    """Return every tree by name: shared ones, then those of each operation."""
    own = (_trees_of(lookup(op)) for op in operation_names())
    return {**TREES, **{name: tree for trees in own for name, tree in trees.items()}}


def find_tree(name: str) -> Tree | None:
    """Return the tree called ``name``, or None."""
    named_tree = TREES.get(name)
    if named_tree is None:  # asks only operations that the name could belong to: others need not be imported
        likely = (_trees_of(lookup(op)) for op in operation_names() if f"_{op}_" in f"_{name}_")
        named_tree = next((trees[name] for trees in likely if name in trees), None)
    return named_tree


def mount(tree: str) -> str:
    """Return the path of a tree, relative to the working directory of an action."""
    return f"__{tree}"


def include_folder(tree: str) -> str:
    """The folder of one of the project's trees that compilers search; launcher files are named by their path in it."""
    return mount(tree) if tree.endswith(_LAUNCHER) else f"{mount(tree)}/include"


def launcher_files(backend: str, operation: str, *names: str) -> dict[str, str]:
    """Return launcher sources of an operation, or of ``common``: paths by the names of their objects in libraries."""
    folder, prefix = _SOURCES[backend]
    root = f"{mount(f'{prefix}_{operation}{_LAUNCHER}')}/launchers/{folder}/{operation}"
    return {f"{operation}_{name}": f"{root}/{name}.cpp" for name in names}


def tree_of(path: str) -> str:
    """Return the tree of a path such as ``__abi/include/kernelwright/abi.h``. ValueError for a path in none."""
    top = path.partition("/")[0]
    if not top.startswith("__"):
        raise ValueError(f"{path!r} lies in no tree; write it as __<tree>/<path in the tree>")
    return top.removeprefix("__")


def cache_mount(cache: str) -> str:
    """Return the path of an append-only cache folder, relative to the working directory of an action."""
    return f"__cache_{cache}"
