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
SOURCES = sorted(path for name in ("BUILD", "*.py", "*.toml") for path in ROOT.glob(f"examples/**/{name}"))
_COMMAND = re.compile(r"(?:^|[`\s])(?:\./)?pants (?P<rest>[^`\n]*)", re.MULTILINE)
# Not by collect_options_info, which computes defaults, of which some need a workspace.
_GLOBAL = {
    "--" + name.replace("_", "-")
    for name in dir(GlobalOptions)
    if isinstance(inspect.getattr_static(GlobalOptions, name), option_types._OptionBase)
}


def commands(text: str) -> Iterator[str]:
    """The arguments of each command in code of a page: indented or fenced lines, and words between backticks."""
    fenced = False
    for line in text.replace("\\\n", " ").splitlines():
        fenced ^= line.lstrip().startswith("```")
        code = [line] if fenced or line.startswith("    ") else re.findall(r"`([^`]*)`", line)
        for piece in code:
            for match in _COMMAND.finditer(piece):
                yield match["rest"].partition(" #")[0].strip()


def commands_of_comments(text: str) -> Iterator[str]:
    """The arguments of each ``./pants`` that a source file tells its reader to run."""
    for match in re.finditer(r"\./pants (?P<rest>[^`\n\"]*)", text):
        yield match["rest"].strip()


def misplaced(command: str) -> List[str]:
    """Global options that stand behind a goal."""
    after_goal: List[str] = []
    goal = False
    for word in shlex.split(command.replace("…", "")):
        if word == "--":
            break
        goal |= word[:1].isalpha()
        flag = re.sub(r"^--no-", "--", word.partition("=")[0])
        if goal and flag in _GLOBAL:
            after_goal.append(word)
    return after_goal


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


def test_commands_are_found_in_pages_and_in_sources() -> None:
    page = "Run `./pants help`:\n\n```\npants --tag=a \\\n  test ::  # all\n```\n\n    ./pants list ::\nPants runs.\n"
    assert [command.split() for command in commands(page)] == [["help"], ["--tag=a", "test", "::"], ["list", "::"]]
    assert list(commands_of_comments('# `./pants test a:`.\nrun("./pants list ::")\n')) == ["test a:", "list ::"]


def test_every_command_of_the_documentation_and_the_examples_has_it() -> None:
    documented = [(page.name, command) for page in PAGES for command in commands(page.read_text())]
    assert len(documented) > 40
    examples = [(path.name, command) for path in SOURCES for command in commands_of_comments(path.read_text())]
    assert len(examples) > 4
    assert [(page, command, misplaced(command)) for page, command in documented + examples if misplaced(command)] == []
