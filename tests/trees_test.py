"""The header trees, one for each backend and operation, hold all headers, and kernels see none of the dispatcher."""

from __future__ import annotations

from pathlib import Path

from kernelwright.codegen.trees import TREES

NATIVE = Path(__file__).parents[1] / "dispatcher_cpp"


def files(folder: Path, patterns: tuple[str, ...]) -> set[str]:
    matches = [match for pattern in patterns for match in folder.glob(pattern)]
    paths = [path for match in matches for path in (match.rglob("*") if match.is_dir() else [match])]
    return {str(path.relative_to(folder)) for path in paths if path.is_file()}


def own() -> list[str]:
    return [name for name, tree in TREES.items() if tree.own]


def test_kernels_see_no_header_of_the_dispatcher() -> None:
    for name in own():
        if name != "dispatcher":
            assert not [path for path in files(NATIVE, TREES[name].parts) if "dispatcher" in path], name


def test_every_header_is_in_a_tree() -> None:
    shown = set().union(*(files(NATIVE, TREES[name].parts) for name in own()))
    assert files(NATIVE, ("include",)) == shown
