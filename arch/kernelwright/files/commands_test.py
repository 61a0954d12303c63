from __future__ import annotations

import errno
import os

import pytest

from kernelwright.files.commands import ArgumentParser, os_error_text, run_module


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file", "x.json"), "'x.json': No such file; check the path"),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "d"), "'d': Is a directory; name a file, not a folder"),
        (OSError(errno.ENOSPC, "No space left"), "No space left; free some space or name a path on another disk"),
        (OSError(errno.EIO, "Input/output error", "x"), "'x': Input/output error"),
        (OSError("the disk says no"), "the disk says no"),
    ],
)
def test_errors_of_files_name_the_file_and_the_next_step(error: OSError, text: str) -> None:
    assert os_error_text(error) == text


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(OSError) as caught:
        os.open("nowhere/x", os.O_RDONLY)
    assert os_error_text(caught.value) == "'nowhere/x': No such file or directory; check the path"


def test_a_module_without_its_packages(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def refused(module: str) -> None:
        raise ModuleNotFoundError(module, name="click")

    monkeypatch.setattr("importlib.import_module", refused)
    assert run_module("kernelwright.codegen.interface.cli", "build") == 2
    printed = capsys.readouterr().err
    assert printed == "error: kernelwright.codegen needs the package click; pip install 'kernelwright[build]'\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sett", "x"], "error: there is no --sett (did you mean '--set'?)"),
        (["--filtr=c"], "error: there is no --filtr (did you mean '--filter'?)"),
        (["--se", "x"], "error: there is no --se (did you mean '--set'?)"),
        (["--set", "x", "--zzz"], "error: unrecognized arguments: --zzz"),
        ([], "error: the following arguments are required: --set"),
    ],
)
def test_misspelt_options(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser("some command", "What it does.")
    parser.add_argument("--set", required=True)
    parser.add_argument("--filter")
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2 and capsys.readouterr().err.splitlines()[-1] == f"some command: {said}"
