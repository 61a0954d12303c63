"""The workspace and the commands of docs/compatibility.md, and what each command must give."""

from __future__ import annotations

import csv
import re
import shlex
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_ROW = re.compile(r"^ *\| `pants (?P<command>[^`]*)`(?P<more>[^|]*)\|", re.MULTILINE)
_ECHO = "; echo $?"
_COMPILE = re.compile(r"(?:Starting|Completed): Compile .*")  # "Scheduling: Compile …" is Pants 2.27 to 2.31's own


@dataclass(frozen=True)
class Said:
    """What a command did. ``ran`` are the processes that were executed, not those that a cache answered."""

    exit_code: int
    stdout: str
    stderr: str
    ran: tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A command of the table by its arguments, and why what it said is wrong: None if it is right."""

    name: str
    arguments: tuple[str, ...]
    wrong: Callable[[Said, Path], str | None]


@dataclass(frozen=True)
class Page:
    """The page's files by their paths in the workspace, and its commands in order."""

    files: dict[str, str]
    steps: tuple[Step, ...]


def read(text: str) -> Page:
    """The page. Raises ValueError for a command that nothing is expected of, and for the converse."""
    blocks = {kind: textwrap.dedent(body) for kind, body in re.findall(r"^ *```(\w+)\n(.*?)^ *```$", text, re.M | re.S)}
    problems = re.search(r"where `p\.json` is `([^`]*)`", text)
    if problems is None or not {"toml", "python"} <= set(blocks):
        raise ValueError("the page lacks pants.toml, k/BUILD or p.json")
    steps = []
    for row in _ROW.finditer(text):
        name = row["command"].removesuffix(_ECHO) + (" again" if row["more"].startswith(" again") else "")
        if name not in EXPECTED:
            raise ValueError(f"nothing is expected of {name!r}; known: {', '.join(EXPECTED)}")
        steps.append(Step(name, tuple(shlex.split(row["command"].removesuffix(_ECHO))), EXPECTED[name]))
    if [step.name for step in steps] != list(EXPECTED):
        raise ValueError(f"the page has {[step.name for step in steps]}; expected: {list(EXPECTED)}")
    return Page({"pants.toml": blocks["toml"], "k/BUILD": blocks["python"], "p.json": problems[1]}, tuple(steps))


def kernel(stdout: str) -> str | None:
    """The identity in the one line of ``pants kernels k:``; None for another text."""
    line = re.fullmatch(r"x86_64_v3 gemm_fp32_rrr_\S+ ([0-9a-f]{64})\n", stdout)
    return line[1] if line else None


def _succeeds(said: Said) -> str | None:
    return None if said.exit_code == 0 else f"exit code {said.exit_code}, not 0"


def _help(said: Said, _: Path) -> str | None:
    return _succeeds(said) or (None if "library_name" in said.stdout else "no help of the target's fields")


def _kernels(said: Said, _: Path) -> str | None:
    return _succeeds(said) or (None if kernel(said.stdout) else f"not one line of one kernel: {said.stdout!r}")


def _check(said: Said, _: Path) -> str | None:
    told = "k:lib x86_64_v3: 1 kernels" in said.stdout + said.stderr
    begun = said.stderr.count("Building liblib.so for x86_64_v3: 1 kernel\n")
    compiles = _COMPILE.findall(said.stderr)
    if told and begun + len(compiles) != 1:
        return f"{begun} lines tell that the library is built, {len(compiles)} tell of compiles"
    return _succeeds(said) or (None if told else "the check does not tell of one kernel")


def _package(said: Said, workspace: Path) -> str | None:
    folder = workspace / "dist/k/lib/x86_64_v3"
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if names != ["liblib.so", "manifest.json", "provenance.json"]:
        return _succeeds(said) or f"dist/k/lib/x86_64_v3 has {names}"
    told = "Wrote dist/k/lib/x86_64_v3/liblib.so" in said.stderr
    return _succeeds(said) or (None if told else "no line says that liblib.so was written")


def _again(said: Said, workspace: Path) -> str | None:
    return _package(said, workspace) or (f"processes ran: {', '.join(said.ran)}" if said.ran else None)


def _bench(said: Said, workspace: Path) -> str | None:
    if said.exit_code != 0 or "1 rows written to dist/bench/k.lib.csv" not in said.stdout + said.stderr:
        return _succeeds(said) or "no line says that 1 row was written"
    with (workspace / "dist/bench/k.lib.csv").open(newline="") as file:
        statuses = [row["status"] for row in csv.DictReader(file)]
    return None if statuses == ["ok"] else f"rows have the status {statuses}"


def _filter(said: Said, _: Path) -> str | None:
    if said.exit_code != 2:
        return f"exit code {said.exit_code}, not 2"
    return None if "c.tile_n > 999" in said.stderr else "the message does not name the filter"


EXPECTED: dict[str, Callable[[Said, Path], str | None]] = {
    "help kernel_library": _help,
    "kernels k:": _kernels,
    "check k:lib": _check,
    "package k:lib": _package,
    "package k:lib again": _again,
    "bench --problems=p.json k:lib": _bench,
    "--kernels-filter='c.tile_n > 999' kernels k:": _filter,
}
