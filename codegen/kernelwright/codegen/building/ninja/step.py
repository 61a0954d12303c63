"""What edges of a Ninja file run besides the plan's commands: digests of headers, and the description of a library.

``kernelwright build --ninja`` writes what a statement says of a library's sources; Ninja compiles later, perhaps after
an edit. Therefore digests of headers are taken when Ninja begins, and a library is described only if everything that
its commands read is still as it was digested or written.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernelwright.codegen.building.mounted_trees import MountedTrees
from kernelwright.codegen.building.store import file_digest, write_atomically
from kernelwright.codegen.inputs import Input, checked, read_json
from kernelwright.codegen.packaging.bundle import BrokenKernelError, bundled
from kernelwright.codegen.packaging.provenance import canonical, generator_materials, sha256
from kernelwright.codegen.resources.limits import LimitError
from kernelwright.codegen.violations import SpecError

TREES = "__trees"
ROOTS = f"{TREES}/roots.json"
"""Folders of the trees that commands read, by tree name."""


class StepRequest(Input):
    """What is known of a library when its Ninja file is written.

    ``library`` is the entry of a bundle request. ``trees`` are names, ``rendered`` and ``models`` digests of files, and
    ``generator`` is the result of :func:`generator_digest`.
    """

    library: dict[str, Any]
    trees: list[str]
    rendered: dict[str, str]
    models: dict[str, str]
    generator: str


def stamp(tree: str) -> str:
    """The path of the file with a tree's digest, so that a command runs again if its headers or toolchain change."""
    return f"{TREES}/{tree}.digest"


def generator_digest() -> str:
    """Return a sha256 over what a statement says of this generator."""
    return sha256(canonical(generator_materials()))


def stamp_trees(trees: Sequence[str]) -> None:
    """Write the digests of trees below the working directory; unchanged files are not touched."""
    mounted = MountedTrees(_roots(), Path(TREES))
    for tree in trees:
        text, path = _stamp_text(mounted, tree), Path(stamp(tree))
        if not path.is_file() or path.read_text() != text:
            write_atomically(path, text.encode())


def describe(request: str, folder: str) -> None:
    """Write a library's manifest and statement into ``folder``; SpecError if anything that commands read changed."""
    asked = checked(StepRequest, read_json(request), request)
    mounted = MountedTrees(_roots(), Path(TREES))
    if changed := list(_changed(asked, mounted)):
        raise SpecError(
            f"{', '.join(changed)} changed since Ninja or kernelwright read it, so that nobody can say what the "
            "library is made of; run kernelwright build --ninja again, then ninja"
        )
    trees = {one["name"]: one["digest"]["sha256"] for one in mounted.materials(asked.trees)}
    materials = [{"files": {**trees, **asked.models}}]
    for name, text in bundled({"library": asked.library, "materials": materials}).items():
        write_atomically(Path(folder, name), text.encode())


def _roots() -> Mapping[str, Path]:
    return {tree: Path(folder) for tree, folder in read_json(ROOTS).items()}


def _stamp_text(mounted: MountedTrees, tree: str) -> str:
    return f"{mounted.get(tree)[1]}\n"


def _changed(asked: StepRequest, mounted: MountedTrees) -> Iterator[str]:
    if generator_digest() != asked.generator:
        yield "kernelwright itself"
    for tree in asked.trees:
        if Path(stamp(tree)).read_text() != _stamp_text(mounted, tree):
            yield f"the tree {tree}"
    for path, digest in asked.rendered.items():
        if file_digest(Path(path)) != digest:
            yield path


def main(arguments: Sequence[str]) -> int:
    """Run ``trees NAME=DIGEST…`` or ``library REQUEST FOLDER``; 1 and one message if a file cannot be written.

    Digests are those at the time the Ninja file was written: others make another command, which Ninja runs again.
    """
    try:
        if arguments[0] == "trees":
            stamp_trees([argument.partition("=")[0] for argument in arguments[1:]])
        else:
            describe(*arguments[1:])
    except (SpecError, BrokenKernelError, LimitError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
