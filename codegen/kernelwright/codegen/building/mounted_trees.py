"""Trees as commands see them: a folder with the parts of a tree, and a digest of the contents of its files."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.codegen.building.store import file_digest, read_json, write_atomically
from kernelwright.codegen.lean.made import made_folder
from kernelwright.codegen.packaging.provenance import file_material
from kernelwright.codegen.trees import Tree, find_tree
from kernelwright.codegen.violations import SpecError

MARGIN_S = 3.0
"""Files that changed less than this many seconds ago are hashed on every use.

File times advance in steps: 4 or 10 ms with the kernel's clock, up to 2 s on some file systems and servers. They do not
show a second change within a step.
"""


class MountedTrees:
    """The trees of one run, each with the digest that its files had on first use."""

    def __init__(self, roots: Mapping[str, Path], into: Path) -> None:
        """``roots`` are folders by tree; folders derived from them go below ``into``."""
        self._roots, self._into = roots, into
        self._found: dict[str, tuple[Path, str]] = {}
        self._lock = threading.Lock()

    def get(self, name: str) -> tuple[Path, str]:
        """Return a folder that shows the parts of a tree and nothing else, and a digest of its contents.

        SpecError for a tree without a folder, and for one that lacks a part.
        """
        with self._lock:
            if name not in self._found:
                self._found[name] = self._mount(name)
            return self._found[name]

    def materials(self, names: Collection[str]) -> list[dict[str, Any]]:
        """Return the resource descriptors of trees, with the digests of :meth:`get`."""
        return [file_material(f"tree {name}", self.get(name)[1]) for name in sorted(names)]

    def changed(self) -> list[str]:
        """Return the trees whose files have changed since :meth:`get`."""
        with self._lock:
            return [name for name, (_, digest) in self._found.items() if self._digest_now(name) != digest]

    def _digest_now(self, name: str) -> str | None:
        try:
            return self._mount(name)[1]
        except (SpecError, OSError):  # a part is missing, or differs from the one that a rewrite was made for
            return None

    def _mount(self, name: str) -> tuple[Path, str]:
        tree = find_tree(name)
        source = (tree.made_of if tree else None) or name
        if tree is None or source not in self._roots:
            raise SpecError(f"no folder was given for tree {source!r}; given: {', '.join(self._roots)}")
        root = Path(self._roots[source])
        if tree.made_of:
            root = made_folder(name, root, self._into)
        return mount_tree(root, tree, self._into)


def mount_tree(root: Path, tree: Tree, into: Path) -> tuple[Path, str]:
    """Make a folder below ``into`` that links to the parts of a tree at ``root`` only; returns it and the digest.

    SpecError if ``root`` lacks a part.
    """
    parts = tree.tops(root)
    view = into / _view(root, parts)
    for name, path in parts.items():
        link = view / name
        if not link.is_symlink():
            link.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):  # another process was faster
                link.symlink_to(path.resolve())
    return view, tree_digest(root, tree, into)


def tree_digest(root: Path, tree: Tree, into: Path) -> str:
    """Return a sha256 over path, contents and execute permission of every file of a tree.

    SpecError if ``root`` lacks a part. As toolchains are hundreds of megabytes, the digest is kept below ``into``
    together with the stat results (size, mtime, ctime, inode) of all files, and is reused as long as none of them
    changes.
    """
    tops = tree.tops(root)
    memo = into / f"{_view(root, tops)}.json"
    begin = time.time()
    files = _files(tops)
    stats = _stats(files)
    kept = read_json(memo)
    if kept is not None and kept.get("stats") == stats and isinstance(kept.get("digest"), str):
        return str(kept["digest"])
    digest = hashlib.sha256()
    for name, path, status in files:
        executable = "x" if status.st_mode & 0o111 else "-"
        digest.update(f"{name}\0{executable}\0{file_digest(Path(path))}\n".encode())
    newest = max((max(status.st_mtime, status.st_ctime) for *_, status in files), default=0.0)
    if newest < begin - MARGIN_S and _stats(_files(tops)) == stats:
        with contextlib.suppress(OSError):  # a read-only cache: hashed again next time
            write_atomically(memo, json.dumps({"stats": stats, "digest": digest.hexdigest()}).encode())
    return digest.hexdigest()


def _view(root: Path, tops: Mapping[str, Path]) -> str:
    """Return a name that depends on the targets of a view's links: a part may be a link that later leads elsewhere."""
    links = sorted((name, str(path.resolve())) for name, path in tops.items())
    return hashlib.sha256(f"{root.resolve()}\0{links}".encode()).hexdigest()[:16]


_File = tuple[str, str, os.stat_result]
# Name within the tree, path, and what the file system says of it.


def _files(tops: dict[str, Path]) -> list[_File]:
    files: list[_File] = []
    for name, path in tops.items():
        status = path.stat()
        if path.is_dir():
            files.extend(_below(str(path), name, ((status.st_dev, status.st_ino),)))
        else:
            files.append((name, str(path), status))
    return sorted(files)


def _below(folder: str, name: str, ancestors: tuple[tuple[int, int], ...]) -> Iterator[_File]:
    """Yield every file below a folder; links are followed, except to a folder that contains them."""
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                status = entry.stat()
            except FileNotFoundError:  # a dead link
                continue
            if entry.is_dir():
                here = (status.st_dev, status.st_ino)
                if here not in ancestors:
                    yield from _below(entry.path, f"{name}/{entry.name}", (*ancestors, here))
            elif entry.is_file():
                yield f"{name}/{entry.name}", entry.path, status


def _stats(files: Sequence[_File]) -> str:
    """Return one digest of the stat results of all files.

    A program may set size and mtime as it likes; ctime is set by the file system.
    """
    digest = hashlib.sha256()
    for name, _, status in files:
        numbers = (status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        digest.update(f"{name}\0{numbers}\n".encode())
    return digest.hexdigest()
