"""docs/troubleshooting.md quotes messages that the code raises, word for word."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache

import pytest
from click.testing import CliRunner

from architecture.sources import ROOMS, is_shipped, python_files
from kernelwright.codegen.interface.cli import kernelwright
from pages.pages import DOCS, ROOT, blocks

PAGE = DOCS / "troubleshooting.md"
# Of Pants itself, and of click, of which the test below asks for it.
FOREIGN = ("exceeded timeout of 60 seconds while waiting for pantsd", "Missing option '--gpu-target'")
# Shorter templates match by chance.
LEAST = 12


def messages() -> list[str]:
    return [" ".join(block.text.split()) for block in blocks(PAGE, "text")]


def pattern(pieces: list[str | None]) -> str | None:
    """A regular expression for a template, where None is a value; None for a template with too little text."""
    if sum(len(piece) for piece in pieces if piece) < LEAST:
        return None
    text = "".join(".*?" if piece is None else re.escape(" ".join(piece.split("\n"))) for piece in pieces)
    return rf"\S*?{text[3:]}" if pieces[0] is None else text  # a value at the beginning is a name or a path


def of_python(text: str) -> Iterator[list[str | None]]:
    """The strings of a source: constants, and f-strings with None for each value."""
    within: set[ast.AST] = set()
    for node in ast.walk(ast.parse(text)):  # outer nodes first
        if isinstance(node, ast.JoinedStr):
            within.update(node.values)
            yield [str(part.value) if isinstance(part, ast.Constant) else None for part in node.values]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in within:
            yield [node.value]


def of_cpp(text: str) -> Iterator[list[str | None]]:
    """The formats of a source, with None for each conversion."""
    for match in re.finditer(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', text):
        joined = re.sub(r'"\s*"', "", match[0])[1:-1]
        pieces = re.split(r"(%[-0-9.]*(?:ll|z|PRI\w+)?[a-z])", joined)
        yield [None if piece.startswith("%") else piece for piece in pieces]


@cache
def templates() -> list[re.Pattern[str]]:
    formats: list[list[str | None]] = []
    for room in ROOMS:
        for path in python_files(room):
            if is_shipped(path):
                formats += of_python(path.read_text())
    for path in (ROOT / "dispatcher_cpp/src").rglob("*.cpp"):
        formats += of_cpp(path.read_text())
    return [re.compile(text) for text in map(pattern, formats) if text is not None]


def test_there_are_twenty_messages() -> None:
    assert len(messages()) >= 20 and len(set(messages())) == len(messages())


@pytest.mark.parametrize("message", [one for one in messages() if not one.startswith(FOREIGN)])
def test_the_code_raises_the_message(message: str) -> None:
    assert any(one.match(message) for one in templates()), message


def test_a_message_that_nothing_raises_is_noticed() -> None:
    wrong = "no wheel with gemm kernels for cpu has been installed; installed are kernels for: nothing"
    assert not any(one.match(wrong) for one in templates())


def test_the_required_option_names_its_values() -> None:
    said = CliRunner().invoke(kernelwright, ["generate", "gemm", "--output-dir", "out"]).output
    (quoted,) = [one for one in messages() if one.startswith(FOREIGN[1])]
    assert quoted.partition(", …")[0] in " ".join(said.split())
