"""The generator and the plugin list the same header trees, one for each backend and operation."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from kernelwright.codegen.trees import TREES

ROOT = Path(__file__).parents[1]
NATIVE = ROOT / "dispatcher_cpp"
PLUGIN = ROOT / "rules/kernelwright/pants/util_rules/trees.py"


def plugin_trees() -> dict[str, tuple[str, ...]]:
    """``SOURCE_TREES`` of the plugin, which runs in Pants's Python and cannot be imported here."""
    for node in ast.parse(PLUGIN.read_text("utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SOURCE_TREES":
            found: dict[str, tuple[str, ...]] = ast.literal_eval(node.value)
            return found
    raise AssertionError(f"{PLUGIN} assigns no SOURCE_TREES")


def files(folder: Path, patterns: tuple[str, ...]) -> set[str]:
    matches = [match for pattern in patterns for match in folder.glob(pattern)]
    paths = [path for match in matches for path in (match.rglob("*") if match.is_dir() else [match])]
    return {str(path.relative_to(folder)) for path in paths if path.is_file()}


def own() -> list[str]:
    return [name for name, tree in TREES.items() if tree.own]


@pytest.mark.parametrize("name", own())
def test_both_lists_name_the_same_files(name: str) -> None:
    here = files(NATIVE, TREES[name].parts)
    there = files(NATIVE, tuple(f"include/kernelwright/{glob}" for glob in plugin_trees()[name]))
    assert here == there and here


def test_the_plugin_has_no_other_trees() -> None:
    assert set(plugin_trees()) == set(own())


def test_kernels_see_no_header_of_the_dispatcher() -> None:
    for name in own():
        if name != "dispatcher":
            assert not [path for path in files(NATIVE, TREES[name].parts) if "dispatcher" in path], name


def test_every_header_is_in_a_tree() -> None:
    shown = set().union(*(files(NATIVE, TREES[name].parts) for name in own()))
    assert files(NATIVE, ("include",)) == shown
