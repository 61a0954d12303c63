"""Locate compilers and headers: folders of installed wheels, or those that a file names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import kernelwright.codegen
from kernelwright.codegen.building.build import read_tree_roots
from kernelwright.codegen.building.mounted_trees import tree_digest
from kernelwright.codegen.toolchains.wheels import WHEELS
from kernelwright.codegen.trees import TREES, all_trees, find_tree
from kernelwright.codegen.violations import SpecError
from kernelwright.jit.errors import ToolchainError

TREES_VARIABLE = "KERNELWRIGHT_TREES"
"""Names a JSON file ``{tree: folder}`` that takes precedence over installed wheels."""

_MADE = tuple(name for name, tree in TREES.items() if tree.made_of)
# Tree → extras of this package that bring the wheels that contain it.
_EXTRAS: Mapping[str, tuple[str, ...]] = {
    "zig": ("jit",),
    "clang": ("jit-amd", "jit-nvidia"),
    "ck_tile": ("jit-amd",),
    "cutlass": ("jit-nvidia",),
    "flashinfer": ("jit-nvidia-attention",),
    "cuda": ("jit-nvidia",),
}

Find = Callable[[str], metadata.Distribution]


@dataclass(frozen=True)
class Trees:
    """Folders by tree. ``stamps`` change whenever the contents of a toolchain do; our own sources have none."""

    roots: Mapping[str, Path]
    stamps: Mapping[str, str]


def find_trees(
    names: Iterable[str],
    given: Mapping[str, Path] | None = None,
    find: Find = metadata.distribution,
    *,
    cache: Path,
) -> Trees:
    """Folders for the trees ``names``: from ``given``, else from the variable's file, else from installed wheels.

    A tree derived from another one has no folder: the executor makes it. The stamp of a wheel is the digest of its
    RECORD, that of a named folder the digest of its contents, which ``cache`` remembers. ToolchainError names every
    wheel that is missing or has another version, and what to install.
    """
    named = _named(given)
    roots, stamps, problems = {}, {}, []
    for name in sorted(set(names) - set(_MADE)):
        try:
            if name in named:
                roots[name] = named[name]
                tree = find_tree(name)
                if tree is not None and not tree.own:
                    stamps[name] = f"contents {tree_digest(named[name], tree, cache / 'trees')}"
            elif _is_own(name):
                roots[name] = _own_sources()
            else:
                roots[name], stamps[name] = _out_of_wheels(name, find)
        except (ToolchainError, SpecError) as error:
            problems.append(str(error))
    if problems:
        raise ToolchainError("\n".join(problems))
    return Trees(roots, stamps)


class InstalledTrees(Mapping[str, Path]):
    """The same folders for the local executor, each located on request: SpecError if it is nowhere."""

    def __init__(self, find: Find = metadata.distribution) -> None:
        self._named = _named(None)
        self._find = find

    def __getitem__(self, name: str) -> Path:
        if name in self._named:
            return self._named[name]
        try:
            return _own_sources() if _is_own(name) else _out_of_wheels(name, self._find)[0]
        except ToolchainError as error:
            raise SpecError(f"{error}; or name its folder in a file of --trees") from None

    def __iter__(self) -> Iterator[str]:
        """Trees that have a folder."""
        for name in {**self._named, **WHEELS, **dict.fromkeys(_own())}:
            try:
                self[name]
            except SpecError:
                continue
            yield name

    def __len__(self) -> int:
        return len(list(iter(self)))


def own_digest(name: str, given: Mapping[str, Path] | None = None) -> str:
    """sha256 over the contents of one of our own trees (ToolchainError if it is missing); empty for others."""
    tree = find_tree(name)
    if tree is None or not tree.own:
        return ""
    root = _named(given).get(name) or _own_sources()
    digest = hashlib.sha256()
    shown = tree.tops(root).values()
    for path in [file for top in shown for file in (sorted(top.rglob("*")) if top.is_dir() else [top])]:
        if path.is_file():
            digest.update(f"{path.relative_to(root)}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def _own() -> list[str]:
    return [name for name, tree in all_trees().items() if tree.own]


def _is_own(name: str) -> bool:
    tree = find_tree(name)
    return tree is not None and tree.own


def _named(given: Mapping[str, Path] | None) -> Mapping[str, Path]:
    if given is not None:
        return given
    file = os.environ.get(TREES_VARIABLE)
    return read_tree_roots(file) if file else {}


def _own_sources() -> Path:
    (package,) = kernelwright.codegen.__path__
    root = Path(package).parent / "native"
    if not (root / "include/kernelwright/abi.h").is_file():
        raise ToolchainError(
            f"{root} holds no headers: this is a checkout; set {TREES_VARIABLE} to a JSON file that maps "
            f"{', '.join(_own())} to its folder dispatcher_cpp, or install the kernelwright wheel"
        )
    return root


def _out_of_wheels(name: str, find: Find) -> tuple[Path, str]:
    if name not in WHEELS:
        raise ToolchainError(f"no wheel has the tree {name!r}; known: {', '.join((*WHEELS, *_own()))}")
    extras, wheels = _EXTRAS[name], WHEELS[name]
    roots, stamps = set(), []
    for wheel, version in wheels.items():
        try:
            installed = find(wheel)
        except metadata.PackageNotFoundError:
            hint = " or ".join(f"'kernelwright[{extra}]'" for extra in extras)
            raise ToolchainError(f"{wheel}=={version} is not installed; pip install {hint}") from None
        if installed.version != version:
            raise ToolchainError(
                f"{wheel} {installed.version} is installed; allowed: {version}; pip install {wheel}=={version}"
            )
        roots.add(Path(str(installed.locate_file(""))).resolve())
        stamps.append(f"{wheel} {version} {hashlib.sha256((installed.read_text('RECORD') or '').encode()).hexdigest()}")
    if len(roots) != 1:
        raise ToolchainError(f"{', '.join(wheels)} are installed in several folders: {', '.join(map(str, roots))}")
    return roots.pop(), "\n".join(stamps)
