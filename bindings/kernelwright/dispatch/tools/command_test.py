from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kernelwright.dispatch.tools import command, doctor


def test_the_folder_for_cmake_is_named_only_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "__file__", str(tmp_path / "dispatch" / "tools" / "command.py"))
    assert command.main(["--cmake-dir"]) == 2
    printed = capsys.readouterr()
    assert printed.out == "" and "install the kernelwright wheel" in printed.err
    assert str(tmp_path / "native" / "cmake") in printed.err  # beside the package
    (tmp_path / "native" / "cmake").mkdir(parents=True)
    assert command.main(["--cmake-dir"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'native' / 'cmake'}\n"


@pytest.mark.parametrize("arguments", [[], ["-h"], ["--help"]])
def test_a_plain_install_helps(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kernelwright.codegen.interface.cli", None)
    assert command.main(arguments) == 0
    said = capsys.readouterr().out
    assert said.startswith("Usage: kernelwright") and "pip install 'kernelwright[build]'" in said and "doctor" in said
    assert "tile-engine" in said
    assert command.main(["kernels"]) == 2
    assert "this command needs the package" in capsys.readouterr().err
    assert command.main(["kernel"]) == 2
    assert (
        capsys.readouterr().err
        == "error: no such command 'kernel' (did you mean 'kernels'?); see kernelwright --help\n"
    )


def test_commands_are_known_without_the_generator() -> None:
    click = pytest.importorskip("click")
    cli = pytest.importorskip("kernelwright.codegen.interface.cli")
    assert sorted((*command.BASE, *command.OTHERS)) == cli.kernelwright.list_commands(click.Context(cli.kernelwright))


def test_a_plain_install_prints_nothing_into_a_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kernelwright.codegen.interface.cli", None)
    monkeypatch.setenv("_KERNELWRIGHT_COMPLETE", "bash_source")
    assert command.main([]) == 0 and command.main(["kernels"]) == 0
    said = capsys.readouterr()
    assert said.out == said.err == ""


def test_the_version_is_printed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "kernelwright.codegen.interface.cli", None)
    assert command.main(["--version"]) == 0
    assert re.fullmatch(r"kernelwright (\d+\.\d+.*|of a checkout)\n", capsys.readouterr().out)


@pytest.mark.parametrize("arguments", [["doctor", "--json"], ["--version"]])
def test_a_reader_that_has_seen_enough_is_no_failure(arguments: list[str]) -> None:
    program = "import sys; from kernelwright.dispatch.tools.command import main; sys.exit(main())"
    started = subprocess.Popen(
        [sys.executable, "-c", program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert started.stdout is not None
    started.stdout.close()  # before a byte was written
    assert started.communicate(timeout=120)[1] == b"" and started.returncode == 0


def test_a_full_disk_is_one_line() -> None:
    program = "import sys; from kernelwright.dispatch.tools.command import main; sys.exit(main())"
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-c", program, "doctor"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    said = "error: No space left on device; free some space or name a path on another disk\n"
    assert ended.returncode == 1 and ended.stderr == said


def test_an_interrupt_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(given: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "main", interrupted)
    assert command.main(["doctor"]) == 1
    assert capsys.readouterr().err == "error: interrupted\n"
