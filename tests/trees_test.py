"""The header trees, one for each backend and operation, hold all headers, and kernels see none of the dispatcher."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from kernelwright.arch import load, names
from kernelwright.codegen.backends.registry import backend_for
from kernelwright.codegen.operation import operation
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.registry import operation_names
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.trees import Tree, all_trees

NATIVE = Path(__file__).parents[1] / "dispatcher_cpp"


TREES = {name: tree for name, tree in all_trees().items() if tree.own}


def files(tree: Tree) -> set[str]:
    matches = tree.tops(NATIVE).values()
    paths = [path for match in matches for path in (match.rglob("*") if match.is_dir() else [match])]
    return {str(path.relative_to(NATIVE)) for path in paths if path.is_file()}


def test_kernels_see_no_header_of_the_dispatcher() -> None:
    for name in TREES:
        if name != "dispatcher":
            assert not [path for path in files(TREES[name]) if "dispatcher" in path], name


def test_kernels_see_no_source_of_a_launcher() -> None:
    for name in TREES:
        sources = [path for path in files(TREES[name]) if path.endswith((".c", ".cpp", ".map"))]
        assert bool(sources) == (name.endswith("_launcher") and name != "shared_launcher"), (name, sources)


def test_no_source_is_among_headers() -> None:
    assert not [path for path in files(Tree("headers", ("include",))) if path.endswith((".c", ".cpp"))]


LAUNCHERS = [Path(path) for path in sorted(files(Tree("launchers", ("launchers",))))]


def test_launchers_are_cpp_and_have_one_naming() -> None:
    assert {path.suffix for path in LAUNCHERS} == {".cpp", ".hpp", ".h", ".map"}
    assert {path.stem for path in LAUNCHERS if path.suffix == ".h"} == {"conditions"}  # made of rules, which are C
    folders = {path.parent for path in LAUNCHERS if path.parent.name != "common"}
    assert all(folder / "launch.cpp" in LAUNCHERS for folder in folders)


def test_launchers_of_an_operation_are_the_sources_of_its_libraries() -> None:
    parts = [(name, operation(name), backend) for name in operation_names() for backend in operation(name).backends]
    sources = {path.split("/", 1)[1] for _, own, backend in parts for path in own.on_backend(backend).sources.values()}
    assert sources == {str(path) for path in LAUNCHERS if path.suffix == ".cpp" and path.parent.name != "common"}


def test_no_files_of_launchers_include_each_other_in_a_circle() -> None:
    included = {
        str(path): set(re.findall(r'#include "(launchers/[^"]+)"', (NATIVE / path).read_text()))
        for path in LAUNCHERS
        if path.suffix in (".cpp", ".hpp", ".h")
    }
    sources = {name.removesuffix(".cpp"): name for name in included if name.endswith(".cpp")}
    for name in included:  # a header's own source is where its functions are
        source = sources.get(name.removesuffix(".hpp"))
        if name.endswith(".hpp") and source is not None:
            included[name] |= included[source] - {name}
    tuple(TopologicalSorter(included).static_order())  # CycleError names the files


@pytest.mark.parametrize("arch, op", [(arch, op) for arch in names() for op in sorted(load(arch).operations)])
def test_no_compile_of_a_kernel_mounts_a_launcher(arch: str, op: str) -> None:
    sets = operation(op).sets
    name = next(one for one in sets.examples if arch in sets.archs(one))
    kernels = expand_set(name, load(arch), op).kernels
    plan = compile_plan("t", load(arch), kernels, backend_for(load(arch), {}))
    seen = {tree for kernel in plan.kernels for action in kernel.actions for tree in action.trees}
    linked = {tree for action in plan.actions for tree in action.trees}
    assert not [tree for tree in seen if tree.endswith("_launcher")]
    assert "shared_launcher" in linked and len([tree for tree in linked if tree.endswith("_launcher")]) == 3


def test_every_header_is_in_a_tree() -> None:
    shown = set().union(*map(files, TREES.values()))
    assert files(Tree("all", ("include", "launchers"))) == shown
