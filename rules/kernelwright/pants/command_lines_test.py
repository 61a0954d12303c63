"""Commands of the documentation are in the order that every series of Pants takes: global options before goals."""

from __future__ import annotations

import inspect
import re
import shlex
from pathlib import Path
from typing import Iterator, List

import pytest

from pants.option import option_types
from pants.option.global_options import GlobalOptions

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/**/*.md")])
_COMMAND = re.compile(r"(?:^|[`\s])(?:\./)?pants (?P<rest>[^`\n]*)", re.MULTILINE)
# Not by collect_options_info, which computes defaults, of which some need a workspace.
_GLOBAL = {
    "--" + name.replace("_", "-")
    for name in dir(GlobalOptions)
    if isinstance(inspect.getattr_static(GlobalOptions, name), option_types._OptionBase)
}


def commands(text: str) -> Iterator[str]:
    """The arguments of each command in code: indented or fenced lines, and words between backticks."""
    fenced = False
    for line in text.splitlines():
        fenced ^= line.lstrip().startswith("```")
        code = [line] if fenced or line.startswith("    ") else re.findall(r"`([^`]*)`", line)
        for piece in code:
            for match in _COMMAND.finditer(piece):
                yield match["rest"].partition(" #")[0].strip()


def misplaced(command: str) -> List[str]:
    """Global options that stand behind a goal."""
    found: List[str] = []
    goal = False
    for word in shlex.split(command.replace("…", "")):
        if word == "--":
            break
        goal |= word[0].isalpha()
        flag = re.sub(r"^--no-", "--", word.partition("=")[0])
        if goal and flag in _GLOBAL:
            found.append(word)
    return found


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("package test --tag=-slow ::", ["--tag=-slow"]),
        ("--tag=-slow package test ::", []),
        ("test --no-pantsd ::", ["--no-pantsd"]),
        ("kernels --count --filter='a == 1' k:", []),
        ("run examples:quickstart -- --level=debug", []),
    ],
)
def test_the_order_is_told_apart(command: str, options: List[str]) -> None:
    assert misplaced(command) == options


def test_every_command_of_the_documentation_has_it() -> None:
    found = [(page.name, command) for page in PAGES for command in commands(page.read_text())]
    assert len(found) > 40
    assert [(page, command, misplaced(command)) for page, command in found if misplaced(command)] == []
