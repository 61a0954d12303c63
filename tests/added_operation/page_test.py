"""docs/adding_an_operation.md quotes files as they are, its commands write what is checked in, and its bar holds."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from added_operation.operation import FOLDER
from kernelwright.codegen import registry
from kernelwright.codegen.descriptions.made import operations
from kernelwright.codegen.interface.cli import main
from kernelwright.dispatch import operation_methods
from kernelwright.tile_engine.registry import OPERATIONS

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/adding_an_operation.md").read_text()
LISTS = {
    "codegen/kernelwright/codegen/registry.py",
    "dispatcher_cpp/src/operations/operations.cpp",
    "bindings/kernelwright/dispatch/operation_methods.py",
    "tile_engine/kernelwright/tile_engine/registry.py",
}
KINDS = (".py", ".h", ".hpp", ".cpp", ".jinja")
ROOMS = ("arch", "codegen", "dispatcher_cpp", "bindings", "jit", "simulator", "tile_engine", "rules")


def lines(text: str) -> str:
    """The text without white space, which the page changes to keep its lines short."""
    return re.sub(r"\s+|\\\n", "", text)


def sources(*places: Path) -> list[Path]:
    return [path for place in places for path in place.rglob("*") if path.suffix in KINDS and path.is_file()]


def in_house() -> list[Path]:
    """The files of norms, their header, and the lists."""
    folders = [path for room in ROOMS for path in (ROOT / room).rglob("norm") if path.is_dir()]
    header = ROOT / "dispatcher_cpp/include/kernelwright/norm.h"
    return [*sources(*folders), header, *(ROOT / name for name in sorted(LISTS))]


def test_the_page_quotes_these_files() -> None:
    texts = [lines(path.read_text()) for path in (*sources(FOLDER), *in_house())]
    blocks = re.findall(r"```(?:python|cpp|c|jinja)\n(.*?)```", PAGE, re.DOTALL)
    assert len(blocks) >= 14
    for block in blocks:
        assert any(lines(block) in text for text in texts), block


def test_the_files_that_the_page_names_exist() -> None:
    named = re.findall(
        r"`((?:tests|arch|codegen|dispatcher_cpp|bindings|tile_engine|kernels|rules/kernelwright)/[\w./]+)`", PAGE
    )
    assert len(named) > 15 and [name for name in named if not (ROOT / name).exists()] == []
    beside = ROOT / "codegen/kernelwright/codegen/operations/norm"
    further = re.findall(r"`((?:constraints|rules|formulas|templates/cpu)/[\w.]+|(?:complete|name|cpu|sets).py)`", PAGE)
    assert len(further) > 5 and [name for name in further if not (beside / name).is_file()] == []


COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    for line in block.replace("\\\n ", "").splitlines()
]


def test_the_page_has_commands() -> None:
    assert len(COMMANDS) == 5


@pytest.mark.parametrize("command", [one for one in COMMANDS if "-m kernelwright.codegen" in one])
def test_a_command_writes_what_is_checked_in(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(command.partition(" -m kernelwright.codegen ")[2])
    if ">" in words:
        *given, _, target = words
        assert main(given) == 0
        assert capsys.readouterr().out == (ROOT / target).read_text()
        return
    name, target = words
    assert main([name, str(tmp_path)]) == 0
    written = [path.relative_to(tmp_path) for path in tmp_path.rglob("*.h*")]
    assert any("norm" in path.parts for path in written)
    for path in written:
        assert (tmp_path / path).read_text() == (ROOT / target / path).read_text()


def test_every_room_lists_every_operation() -> None:
    listed = re.search(
        r"#define KW_OPERATIONS\(each\) (.*)", (ROOT / "dispatcher_cpp/src/operations/operations.cpp").read_text()
    )
    assert listed is not None
    named = {name.lower() for name in re.findall(r"each\((\w+)\)", listed[1])}
    assert (
        named == set(registry.OPERATIONS) == set(operation_methods.OPERATIONS) == set(OPERATIONS) == set(operations())
    )


def test_an_operation_is_a_line_in_each_list() -> None:
    said = re.compile(
        r"(operations|problems|operators|learning)[./]norm\b|[\"']norm[\"']|each\(Norm\)|kernelwright/norm\b"
        r"|, norm\b +#"
    )
    own = set(in_house())
    by_path: dict[str, list[str]] = {}
    for path in sources(*(ROOT / room for room in ROOMS)):
        outside = path not in own or str(path.relative_to(ROOT)) in LISTS
        if outside and not path.stem.startswith("norm") and not path.name.endswith("_test.py"):
            hits = [line for line in path.read_text().splitlines() if said.search(line)]
            by_path |= {str(path.relative_to(ROOT)): hits} if hits else {}
    assert set(by_path) == LISTS and all(len(hits) == 1 for hits in by_path.values()), by_path
