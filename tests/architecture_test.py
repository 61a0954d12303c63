"""The house is as docs/architecture.md draws it: who may import whom, how large a room may be, what exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
# Package → packages of ours that it may import.
ALLOWED = {
    "arch": set(),
    "codegen": {"arch"},
    "dispatch": set(),
    "jit": {"arch", "codegen", "dispatch"},
    "pants": set(),
    "simulator": set(),
}
FOLDERS = {
    **{"arch": "arch", "codegen": "codegen", "bindings": "dispatch", "jit": "jit"},
    **{"rules": "pants", "simulator": "simulator"},
}
# Third-party packages that a GPU box must not need.
DISPATCH_REQUIRES = {"numpy"}
SIMULATOR_REQUIRES = {"numpy", "ml_dtypes", "tinygrad"}


def python_files(folder: str) -> list[Path]:
    found = sorted((ROOT / folder).rglob("*.py"))
    assert found, f"no sources in {folder}: the test does not see the tree"
    return found


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


@pytest.mark.parametrize("folder", FOLDERS)
def test_packages_import_only_what_the_drawing_allows(folder: str) -> None:
    package = FOLDERS[folder]
    for path in python_files(folder):
        for module in imported_modules(path):
            if module.startswith("kernelwright."):
                other = module.split(".")[1]
                assert other == package or other in ALLOWED[package], f"{path.relative_to(ROOT)} imports {module}"


def test_nothing_but_the_plugin_imports_pants() -> None:
    for folder in ("arch", "codegen", "bindings", "jit", "simulator"):
        for path in python_files(folder):
            assert not any(re.match(r"pants\b", module) for module in imported_modules(path)), path


def is_shipped(path: Path) -> bool:
    """Whether users get it: neither a test nor something that only tests import."""
    return not (path.name.endswith("_test.py") or path.name.startswith("testing") or "testdata" in path.parts)


def is_known(module: str, allowed: set[str]) -> bool:
    import sys

    root = module.split(".")[0]
    return root in sys.stdlib_module_names or root in allowed or root == "kernelwright"


def test_dispatch_needs_numpy_only() -> None:
    for path in filter(is_shipped, python_files("bindings")):
        tree = ast.parse(path.read_text())
        top_level = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
        for node in top_level:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for name in names:
                known = is_known(name, DISPATCH_REQUIRES)
                assert known, f"{path.relative_to(ROOT)} imports {name} when it is imported"


def test_the_simulator_needs_numpy_and_one_module_needs_tinygrad() -> None:
    for path in filter(is_shipped, python_files("simulator")):
        for name in imported_modules(path):
            assert is_known(name, SIMULATOR_REQUIRES), f"{path.relative_to(ROOT)} imports {name}"
            assert name.split(".")[0] != "tinygrad" or path.name == "decode.py", f"{path.name} imports {name}"


def test_only_the_engine_package_asks_pants_for_its_own_types() -> None:
    """Rules elsewhere make requests of the plugin's own types only, so a port to another Pants replaces one package."""
    for path in python_files("rules"):
        if path.parent.name == "engine" or path.name.endswith("_test.py"):
            continue
        tree = ast.parse(path.read_text())
        ours = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernelwright."):
                ours.update(name.name for name in node.names)
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Get":
                request = node.args[1]
                asked = ast.unparse(request.func if isinstance(request, ast.Call) else request)
                assert asked in ours, f"{path.relative_to(ROOT)}:{node.lineno} makes a request of Pants' own: {asked}"


@pytest.mark.parametrize("folder", [*FOLDERS, "dispatcher_cpp"])
def test_no_room_is_too_large(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in (".py", ".h", ".hpp", ".c", ".cpp", ".cu"):
            assert len(path.read_text().splitlines()) <= 600, path.relative_to(ROOT)


def test_the_drawing_names_what_exists() -> None:
    text = (ROOT / "docs/architecture.md").read_text()
    for name in re.findall(r"`([a-z_0-9]+/[A-Za-z_0-9./]+)`", text):
        assert (ROOT / name).exists(), f"docs/architecture.md names {name}, which does not exist"
    for folder in FOLDERS:
        for path in (ROOT / folder / "kernelwright" / FOLDERS[folder]).iterdir():
            if path.suffix == ".py" and not path.name.startswith("_") and not path.name.endswith("_test.py"):
                assert f"`{path.stem}`" in text, f"docs/architecture.md does not name {path.relative_to(ROOT)}"
