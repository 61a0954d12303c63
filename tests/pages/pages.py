"""The pages of the documentation, and the code that they show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md"), *ROOT.glob("examples/**/*.md")])
_FENCED = re.compile(r"^(?P<indent> *)```(?P<kind>[\w{}-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: ``kind`` is the word behind the fence, ``heading`` the heading above it."""

    kind: str
    text: str
    heading: str


def blocks(page: Path, kind: str | None = None, heading: str | None = None) -> list[Block]:
    """The fenced blocks of a page in order, those of one kind or below one heading alone if asked."""
    text = page.read_text()
    headings = [(found.start(), found[1]) for found in re.finditer(r"^#+ (.*)$", text, re.MULTILINE)]
    found = []
    for match in _FENCED.finditer(text):
        above = [title for start, title in headings if start < match.start()]
        lines = [line.removeprefix(match["indent"]) for line in match["text"].splitlines(keepends=True)]
        found.append(Block(match["kind"], "".join(lines), above[-1] if above else ""))
    return [block for block in found if kind in (None, block.kind) and heading in (None, block.heading)]


def code_lines(page: Path) -> Iterator[tuple[int, str]]:
    """The lines of fenced and indented code with their numbers."""
    fenced = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield number, line
