"""The pages of the documentation, and the code that they show."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([ROOT / "README.md", *DOCS.rglob("*.md"), *ROOT.glob("examples/**/*.md")])
_FILE = re.compile(r"`([\w./]*(?:\.\w+|BUILD))`")
_FENCED = re.compile(
    r"^(?P<indent> *)```(?P<kind>[\w{}-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Block:
    """A fenced block: ``kind`` is the word behind the fence, ``heading`` the heading above it.

    ``file`` is the last file that the paragraph above the block names, in which a reader saves it.
    """

    kind: str
    text: str
    heading: str
    file: str | None


def blocks(page: Path, kind: str | None = None, heading: str | None = None) -> list[Block]:
    """The fenced blocks of a page in order, those of one kind or below one heading alone if asked."""
    text = page.read_text()
    prose = _FENCED.sub(lambda matched: " " * len(matched[0]), text)  # where a comment is no heading
    headings = [(matched.start(), matched[1]) for matched in re.finditer(r"^#+ (.*)$", prose, re.MULTILINE)]
    matched = []
    for match in _FENCED.finditer(text):
        above = [title for start, title in headings if start < match.start()]
        lines = [line.removeprefix(match["indent"]) for line in match["text"].splitlines(keepends=True)]
        named = _FILE.findall(text[: match.start()].rstrip().rpartition("\n\n")[2])
        matched.append(Block(match["kind"], "".join(lines), above[-1] if above else "", named[-1] if named else None))
    return [block for block in matched if kind in (None, block.kind) and heading in (None, block.heading)]


def code_lines(page: Path) -> Iterator[tuple[int, str]]:
    """The lines of fenced and indented code with their numbers."""
    fenced = False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif fenced or line.startswith("    "):
            yield number, line


def script(page: Path, heading: str) -> str:
    """A shell script that does what a section says: it writes the files and runs the blocks of kind ``sh``."""
    parts = ["set -euo pipefail"]
    for block in blocks(page, heading=heading):
        if block.kind == "sh":
            parts.append(block.text)
        else:
            assert block.file, f"{page.name}, {heading}: no file is named above {block.text!r}"
            parts.append(
                f"mkdir -p {Path(block.file).parent}\ncat > {block.file} <<'END OF FILE'\n{block.text}END OF FILE"
            )
    return "\n".join(parts)
