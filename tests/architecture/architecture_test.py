"""The house is as docs/architecture.md draws it: who may import whom, how large a room may be, what exists."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from architecture.layers import LAYERS, layer
from architecture.sources import ROOMS, ROOT, circle, graph, imported_modules, is_shipped, python_files

# Package → packages of ours that it may import.
ALLOWED: dict[str, set[str]] = {
    "arch": {"files"},
    "codegen": {"arch", "files", "problems"},
    "dispatch": {"files", "problems"},
    "files": set(),
    "jit": {"arch", "codegen", "dispatch", "files", "problems"},
    "pants": set(),
    "problems": {"files"},
    "simulator": {"files"},
    "tile_engine": {"arch", "files", "problems", "codegen", "dispatch", "jit"},
    "torch": {"dispatch", "problems"},
}
# Third-party packages that a GPU box must not need.
DISPATCH_REQUIRES = {"numpy"}
TORCH_REQUIRES = {"torch"}
SIMULATOR_REQUIRES = {"numpy", "ml_dtypes", "msgpack", "tinygrad", "elftools"}
SOURCES = (".py", ".h", ".hpp", ".c", ".cpp", ".cu")
# What calls json.loads: readers of the project's own data, of what it kept itself, and of its own processes.
READ_BY_JSON = {
    "arch/kernelwright/files/arch_files.py",
    "arch/kernelwright/files/strict_json.py",
    "bindings/kernelwright/dispatch/core/explanation.py",
    "bindings/kernelwright/dispatch/core/refusal.py",
    "bindings/kernelwright/dispatch/recording/trace.py",
    "bindings/kernelwright/dispatch/tools/lmdb_shards.py",  # a program of its own, whose crash is an answer
    "bindings/kernelwright/dispatch/tools/store_check.py",
    "codegen/kernelwright/codegen/building/store.py",
    "codegen/kernelwright/codegen/heuristics/schema.py",
    "codegen/kernelwright/codegen/interface/cli.py",
    "codegen/kernelwright/codegen/operations/attention/products.py",
    "codegen/kernelwright/codegen/operations/attention/receipts.py",
    "codegen/kernelwright/codegen/operations/attention/sets.py",
    "codegen/kernelwright/codegen/operations/convolution/full_set.py",
    "codegen/kernelwright/codegen/operations/gemm/kernel_sets.py",
    "codegen/kernelwright/codegen/operations/gemm/sets.py",
    "codegen/kernelwright/codegen/packaging/envelope.py",  # signed bytes have rules of their own
    "codegen/kernelwright/codegen/packaging/signing.py",
    "codegen/kernelwright/codegen/packaging/verify.py",
    "codegen/kernelwright/codegen/supervision/supervised.py",  # what the supervisor reports
    "tile_engine/kernelwright/tile_engine/measuring/isolation.py",
    "tile_engine/kernelwright/tile_engine/measuring/worker.py",
    "tile_engine/kernelwright/tile_engine/problems/attention_models.py",
    "tile_engine/kernelwright/tile_engine/problems/models.py",
    "tile_engine/kernelwright/tile_engine/problems/networks.py",
}
MAX_LINES = 450
MAX_MODULES = 15


@pytest.mark.parametrize("package", ROOMS)
def test_packages_import_only_what_the_drawing_allows(package: str) -> None:
    for path in python_files(package):
        for module in imported_modules(path):
            if module.startswith("kernelwright."):
                other = module.split(".")[1]
                assert other == package or other in ALLOWED[package], f"{path.relative_to(ROOT)} imports {module}"


def test_nothing_but_the_plugin_imports_pants() -> None:
    for package in set(ROOMS) - {"pants"}:
        for path in python_files(package):
            assert not any(re.match(r"pants\b", module) for module in imported_modules(path)), path


@pytest.mark.parametrize("package", ROOMS)
def test_no_modules_import_each_other(package: str) -> None:
    assert not circle(graph(package)), " → ".join(circle(graph(package)))


@pytest.mark.parametrize("package", ROOMS)
def test_no_module_imports_upwards(package: str) -> None:
    for name, imported in graph(package).items():
        for other in imported:
            assert layer(package, other) <= layer(package, name), (
                f"{package}: {name or '__init__'} (layer {layer(package, name)}) imports {other} "
                f"(layer {layer(package, other)} of {LAYERS[package]})"
            )


@pytest.mark.parametrize("package", ROOMS)
def test_operations_do_not_know_each_other(package: str) -> None:
    for name, imported in graph(package).items():
        for other in imported:
            here, there = (re.match(r"operations\.(\w+)\.", f"{module}.") for module in (name, other))
            if here and there:
                assert here[1] == there[1], f"{package}: {name} imports {other}"


def test_only_operations_and_their_list_know_an_operation() -> None:
    """Outside ``operations`` nothing of the generator imports one: the registry finds it by name."""
    for name, imported in graph("codegen").items():
        if not name.startswith("operations."):
            assert not [other for other in imported if re.match(r"operations\.\w+", other)], name


def is_known(module: str, allowed: set[str]) -> bool:
    root = module.split(".")[0]
    return root in sys.stdlib_module_names or root in allowed or root == "kernelwright"


@pytest.mark.parametrize("package, requires", [("dispatch", DISPATCH_REQUIRES), ("torch", TORCH_REQUIRES)])
def test_bindings_need_their_array_library_only(package: str, requires: set[str]) -> None:
    for path in filter(is_shipped, python_files(package)):
        tree = ast.parse(path.read_text())
        for node in tree.body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                for name in names:
                    known = is_known(name, requires)
                    assert known, f"{path.relative_to(ROOT)} imports {name} when it is imported"


@pytest.mark.parametrize("package", ["files", "problems"])
def test_what_everyone_imports_needs_the_standard_library_alone(package: str) -> None:
    for path in filter(is_shipped, python_files(package)):
        assert all(is_known(module, set()) for module in imported_modules(path)), path


def test_files_of_others_are_read_by_one_reader() -> None:
    """``json.loads`` is for what the project wrote itself: its data, caches, records, messages of its children."""
    for package in ("arch", "codegen", "dispatch", "jit", "tile_engine"):
        for path in filter(is_shipped, python_files(package)):
            if "json.load" in path.read_text() and str(path.relative_to(ROOT)) not in READ_BY_JSON:
                raise AssertionError(
                    f"{path.relative_to(ROOT)} calls json.load(s); take kernelwright.files.strict_json"
                )


def test_one_module_of_the_simulator_needs_tinygrad() -> None:
    users = set()
    for path in filter(is_shipped, python_files("simulator")):
        for name in imported_modules(path):
            assert is_known(name, SIMULATOR_REQUIRES), f"{path.relative_to(ROOT)} imports {name}"
            if name.split(".")[0] == "tinygrad":
                users.add(path.stem)
    assert users <= {"decode"}


def test_only_the_engine_calls_rules_of_pants() -> None:
    """Outside ``compat`` no rule asks by type; outside ``engine`` a rule calls rules of the plugin only."""
    for path in python_files("pants"):
        if "compat" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                names = {alias.name for alias in node.names}
                of_rules = (node.module or "").startswith("pants.engine") and names & {"Get", "MultiGet", "rule"}
                assert not of_rules, f"{path.relative_to(ROOT)}:{node.lineno} imports {', '.join(of_rules)}; see compat"
                asks = node.module == "kernelwright.pants.compat" and "calls" in names
                assert "engine" in path.parts or not asks, f"{path.relative_to(ROOT)} calls rules of Pants; see engine"


def sources(folder: str) -> list[Path]:
    """Shipped sources of a room in any language."""
    return [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SOURCES and is_shipped(path)]


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


@pytest.mark.parametrize("folder", [*sorted(set(ROOMS.values())), "benchmarks", "dispatcher_cpp", "examples", "tests"])
def test_no_file_is_too_long(folder: str) -> None:
    """Tests too."""
    paths = [path for path in sorted((ROOT / folder).rglob("*")) if path.suffix in SOURCES]
    assert paths, f"no sources of {folder}: the test does not see them"
    for path in paths:
        assert lines(path) <= MAX_LINES, f"{path.relative_to(ROOT)}: divide it"


@pytest.mark.parametrize("folder", [*sorted(set(ROOMS.values())), "dispatcher_cpp"])
def test_no_folder_is_too_full(folder: str) -> None:
    full = Counter(path.parent for path in sources(folder) if path.name != "__init__.py")
    for parent, count in full.items():
        assert count <= MAX_MODULES, f"{parent.relative_to(ROOT)} holds {count} modules"


@pytest.mark.parametrize("package", ROOMS)
def test_every_package_says_what_lives_there(package: str) -> None:
    for parent in {path.parent for path in python_files(package)}:
        if parent.name == "testdata":
            continue
        text = (parent / "__init__.py").read_text()
        assert ast.get_docstring(ast.parse(text)), f"{parent.relative_to(ROOT)}/__init__.py has no docstring"


def test_the_drawing_names_what_exists() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    for name in re.findall(r"`([a-z_0-9]+/[A-Za-z_0-9./]+)`", text):
        assert (ROOT / name).exists(), f"docs/architecture.md names {name}, which does not exist"


# Programs that name an architecture in code; everything else reads architecture files.
NAMES_AN_ARCH = {
    "codegen/kernelwright/codegen/lean/cutlass_archs.py",  # what the rewritten headers were pruned for
    "codegen/kernelwright/codegen/toolchains/cuda.py",  # how nvcc names real and virtual targets
}
_ARCH_NAME = re.compile(r"gfx\d\w+|sm_\d+\w*|x86_64_v\d|x86_64_|sm_")


@pytest.mark.parametrize("package", sorted(set(ROOMS) - {"simulator"}))  # instruction sets have names of chips
def test_programs_name_no_architecture(package: str) -> None:
    """What differs between architectures is in their files, wherever a new one is added."""
    for path in filter(is_shipped, python_files(package)):
        if {"testing", "testdata"} & set(path.parts) or str(path.relative_to(ROOT)) in NAMES_AN_ARCH:
            continue
        texts = [node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)]
        named = [text for text in texts if isinstance(text, str) and _ARCH_NAME.fullmatch(text)]
        assert not named, f"{path.relative_to(ROOT)} names {', '.join(named)}"


@pytest.mark.parametrize("package", ROOMS)
def test_the_drawing_names_every_module(package: str) -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    for name in graph(package):
        stem = name.rpartition(".")[2]
        if stem and not stem.startswith("_"):
            assert re.search(rf"`([\w/]*/)?{stem}/?`", text), f"docs/architecture.md does not name {package}'s {name}"
