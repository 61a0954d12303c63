"""The project's Python sources as a graph: which module imports which, tests and test-only code aside."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Package below `kernelwright` → folder that holds it.
ROOMS = {
    **{
        "arch": "arch",
        "files": "arch",
        "problems": "arch",
        "codegen": "codegen",
        "dispatch": "bindings",
        "torch": "bindings",
        "jit": "jit",
    },
    **{"pants": "rules", "simulator": "simulator", "tile_engine": "tile_engine"},
}


def is_shipped(path: Path) -> bool:
    """Whether a file reaches users: neither a test nor code that only tests import."""
    test_only = {"testing", "testdata"} & set(path.parts)
    return not (path.name.endswith("_test.py") or path.name == "conftest.py" or test_only)


def place(package: str) -> Path:
    """The folder of a package itself."""
    return ROOT / ROOMS[package] / "kernelwright" / package


def python_files(package: str) -> list[Path]:
    """Every Python file of a package."""
    paths = sorted(place(package).rglob("*.py"))
    assert paths, f"no sources of {package}: the test does not see the tree"
    return paths


def imported_modules(path: Path) -> Iterator[str]:
    """What a file imports, also inside functions and for type checkers only: ``a.b.c`` of ``from a.b import c``."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield from (f"{node.module}.{name.name}" for name in node.names)


@cache
def graph(package: str) -> dict[str, set[str]]:
    """Shipped modules of a package by dotted name below it (``""`` is the package), with those they import."""
    files = {_dotted(path.relative_to(place(package))): path for path in python_files(package) if is_shipped(path)}
    return {name: set(_own(path, f"kernelwright.{package}", files)) - {name} for name, path in files.items()}


def _own(path: Path, package: str, files: dict[str, Path]) -> Iterator[str]:
    for module in imported_modules(path):
        if module == package or module.startswith(f"{package}."):
            name = module[len(package) + 1 :]
            outer = name.rpartition(".")[0]
            if name in files or outer in files:  # what is no module is a name inside one
                yield name if name in files else outer


def _dotted(path: Path) -> str:
    return ".".join(path.parts[:-1] if path.name == "__init__.py" else (*path.parts[:-1], path.stem))


def circle(edges: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, the first one repeated at the end; empty if there is none."""
    done: set[str] = set()
    road: list[str] = []

    def visit(name: str) -> list[str]:
        if name in road:
            return [*road[road.index(name) :], name]
        if name in done:
            return []
        road.append(name)
        for other in sorted(edges[name]):
            if cycle := visit(other):
                return cycle
        road.pop()
        done.add(name)
        return []

    return next((cycle for name in sorted(edges) if (cycle := visit(name))), [])
