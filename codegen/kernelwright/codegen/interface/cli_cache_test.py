from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from kernelwright.codegen.building.cache_folder import RunningMark, make_private
from kernelwright.codegen.interface import cli, exit_codes


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    make_private(folder)
    RunningMark(folder).close()
    for days in (1, 40):
        text = folder / f"texts/{days:064x}"
        text.write_bytes(bytes(2_000_000))
        os.utime(text, (time.time() - days * 86400,) * 2)
    monkeypatch.setenv("KERNELWRIGHT_CACHE", str(folder))
    return folder


def test_the_size_is_shown(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cache"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:2] == [str(root), "2 entries, 4.0 MB"] and "  texts: 4.0 MB" in shown
    assert cli.main(["cache", "--size", "--json", "--cache", str(root / "none")]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == 0 and not (root / "none").exists()


def test_limits_of_pruning(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["cache", "--prune"]) == 0
    assert "removed 1 entry, 2.0 MB" in capsys.readouterr().out
    assert cli.main(["cache", "--prune", "--max-size", "2MB", "--max-age", "2d", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["removed"], document["bytes"], document["kinds"]["texts"]) == (0, 2_000_000, 2_000_000)
    assert cli.main(["cache", "--prune", "--size", "--max-size", "1.5MiB"]) == 0
    assert "0 entries, 0.0 MB" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--max-size", "5GB"], "are limits of --prune"),
        (["--prune", "--max-size", "5 apples"], "such as 5GB"),
        (["--prune", "--max-size", "-1"], "such as 5GB"),
        (["--prune", "--max-age", "30"], "such as 30d"),
    ],
)
def test_limits_that_say_nothing(
    root: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["cache", *arguments]) == exit_codes.EXIT_BAD_INPUT
    assert message in capsys.readouterr().err and len(list((root / "texts").iterdir())) == 2
