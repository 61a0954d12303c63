"""Which files of tests run in which tier, by BUILD files, and what the marks in them say."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PRELUDE = ROOT / "tests/tiers.build"
RUN_BY_HAND = (
    "tests/compatibility",
    "tests/e2e",
    "tests/faults",
    "tests/downstream",
    "tests/remote",
    "tests/pytorch",
    "tests/models",
    "tests/gpu",
)


@dataclass(frozen=True)
class Family:
    """A marked test function: what its mark says; ``keep`` is None where all of it is thorough."""

    name: str
    keep: int | None
    instead: str | None


@dataclass(frozen=True)
class TestFile:
    """A file with marks: its families, and how many of its functions have none."""

    families: tuple[Family, ...]
    unmarked: int

    @property
    def has_default_part(self) -> bool:
        return bool(self.unmarked) or any(family.keep for family in self.families)


@cache
def marked_files() -> dict[str, TestFile]:
    """By path below the root: every file of tests that uses the mark."""
    by_path = {}
    for path in ROOT.glob("*/**/*_test.py"):
        if "pytest.mark.thorough" in (text := path.read_text()) and (file := read(text)).families:
            by_path[path.relative_to(ROOT).as_posix()] = file
    return by_path


def read(text: str) -> TestFile:
    """The marks of a module. AssertionError for a mark whose values are not written out."""
    tree, families, unmarked = ast.parse(text), [], 0
    whole = next((m for node in tree.body if _is_pytestmark(node) for m in _marks(node)), None)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            mark = next((m for one in node.decorator_list for m in _marks(one)), whole)
            if mark is None:
                unmarked += 1
            else:
                values = {word.arg: ast.literal_eval(word.value) for word in mark.keywords}
                families.append(Family(node.name, values.get("keep"), values.get("instead")))
    return TestFile(tuple(families), unmarked)


def _is_pytestmark(node: ast.AST) -> bool:
    return isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in node.targets)


def _marks(node: ast.AST) -> Iterator[ast.Call]:
    for one in ast.walk(node):
        if isinstance(one, ast.Call) and ast.unparse(one.func) == "pytest.mark.thorough":
            yield one


@cache
def files_by_tier() -> dict[str, set[str]]:
    """Paths below the root of the files that targets of tests list, ``default`` and ``thorough``."""
    by_tier: dict[str, set[str]] = {"default": set(), "thorough": set()}
    for path in ROOT.glob("**/BUILD"):
        if "downstream" not in path.parts:
            _execute(path, by_tier)
    return by_tier


class _Names(dict[str, Any]):
    """What a BUILD file may call: every target type that is not about tests is ignored."""

    def __missing__(self, name: str) -> Callable[..., Any]:
        if name in __builtins__:  # type: ignore[operator]
            raise KeyError(name)
        return lambda *arguments, **fields: None


def _execute(build: Path, by_tier: dict[str, set[str]]) -> None:
    def python_tests(sources: list[str] | None = None, tags: Any = (), **fields: Any) -> None:
        tier = "thorough" if "thorough" in tags else "default"
        by_tier[tier] |= _matching(build.parent, sources or ["*_test.py"])

    names = _Names(python_tests=python_tests)
    for script in (PRELUDE, build):
        exec(compile(script.read_text(), str(script), "exec"), names)


def _matching(folder: Path, sources: list[str]) -> set[str]:
    files: set[Path] = set()
    for pattern in sources:
        if pattern.startswith("!"):
            files = {file for file in files if not _matches(file.relative_to(folder), pattern[1:])}
        else:
            files |= set(folder.glob(pattern))
    return {file.relative_to(ROOT).as_posix() for file in files}


def _matches(file: Path, pattern: str) -> bool:
    return PurePosixPath("/", file).match(pattern.removeprefix("**/")) if "**" in pattern else file.match(pattern)
