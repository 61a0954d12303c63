"""Trees generated from other trees: the rewritten headers, and nothing else."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernelwright.codegen.lean import ck_tile, cutlass, flashinfer
from kernelwright.codegen.lean.rewrite import Header, rewritten
from kernelwright.codegen.trees import TREES, mount
from kernelwright.codegen.violations import SpecError

_HEADERS: Mapping[str, tuple[Header, ...]] = {
    "ck_tile_lean": ck_tile.HEADERS,
    "cutlass_lean": cutlass.HEADERS,
    "flashinfer_edited": flashinfer.HEADERS,
}
_FOLDERS: Mapping[str, str] = {
    "ck_tile_lean": ck_tile.FOLDER,
    "cutlass_lean": cutlass.FOLDER,
    "flashinfer_edited": flashinfer.FOLDER,
}
# Left out of a header's path in the generated tree.


def reads(name: str) -> tuple[str, ...]:
    """Return the files that a tree is made from, relative to the root of the tree that contains them."""
    return tuple(header.path for header in _HEADERS[name])


def made_files(name: str, root: Path) -> dict[str, str]:
    """Return the text of a tree's files by path; ``root`` is the folder of the tree that it is made from.

    SpecError for a header of another release than the pinned one, or a missing header.
    """

    def read(path: str) -> bytes:
        try:
            return (root / path).read_bytes()
        except OSError as error:
            raise SpecError(f"the tree {TREES[name].made_of} has no {path}: {error.strerror}") from None

    texts = rewritten(_HEADERS[name], read)
    return {path.removeprefix(_FOLDERS[name]): text for path, text in texts.items()}


def made_folder(name: str, root: Path, into: Path) -> Path:
    """A folder below ``into`` with a tree's files, named after their contents. Raises like :func:`made_files`."""
    files = made_files(name, root)
    digest = hashlib.sha256("".join(f"{path}\0{text}\0" for path, text in sorted(files.items())).encode())
    folder = into / f"made-{digest.hexdigest()[:16]}"
    for path, text in files.items():
        target = folder / path
        if not target.is_file() or target.read_text("utf-8") != text:
            target.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=into) as fresh:
                (Path(fresh) / "file").write_text(text, "utf-8")
                (Path(fresh) / "file").replace(target)
    return folder


def respond_tree(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Respond to a request of stage "tree", see :mod:`kernelwright.codegen.interface.protocol`."""
    name = raw.get("name")
    if set(raw) != {"stage", "name"} or not isinstance(name, str) or name not in _HEADERS:
        raise SpecError(f"a request of stage 'tree' has a name and no other key; allowed: {', '.join(_HEADERS)}")
    return {"files": made_files(name, Path(mount(TREES[name].made_of or "")))}
