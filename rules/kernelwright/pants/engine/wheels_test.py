"""The shell script that lets pip unpack wheels, with stand-ins for pip and for the search of an interpreter."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from kernelwright.pants.engine import interpreters, wheels
from kernelwright.pants.engine.exit_codes import BadInput

_PIP = """\
echo "$@" >>asked
mkdir -p __new/wheels/.deps/some.whl
"""


def unpack(folder: Path, find: str) -> subprocess.CompletedProcess[str]:
    """Run the script in a sandbox whose pip writes down its arguments."""
    (folder / "__wheels").mkdir(exist_ok=True)
    (folder / "pip").write_text(_PIP)
    # ln -s "$new" __new is relative to the sandbox; a second run of it there finds the link of the first.
    (folder / "__new").unlink(missing_ok=True)
    argv = ("/bin/sh", "-c", wheels._UNPACK, "unpack", "key", find, "/bin/sh", "./pip", "--requirement", "some.txt")
    return subprocess.run(argv, cwd=folder, env=os.environ, capture_output=True, text=True)


def test_pip_asks_for_a_python_that_the_wheels_accept(tmp_path: Path) -> None:
    run = unpack(tmp_path, "PEX_SCRIPT=pex3 printf '%s\\n' '/of a user/python3.11' /usr/bin/python3.12")
    assert run.returncode == 0, run.stderr
    assert (tmp_path / "asked").read_text() == "--requirement some.txt --python /of a user/python3.11\n"
    assert (tmp_path / "__wheels/key/some.whl").is_dir()
    assert unpack(tmp_path, "false").returncode == 0, "what is there already needs no Python"
    assert (tmp_path / "asked").read_text().count("\n") == 1


def test_no_python_that_the_wheels_accept(tmp_path: Path) -> None:
    run = unpack(tmp_path, "true")
    assert not list((tmp_path / "__wheels").iterdir())
    with pytest.raises(BadInput, match=r"toolchain zig needs CPython>=3\.11.*; add such a Python"):
        interpreters.check_found(run.returncode, "toolchain zig", wheels._PYTHON)


def test_the_search_takes_the_tool_and_the_path_of_a_pex_command() -> None:
    pex = ("/python", "./pex", "--tmpdir", ".tmp", "--python-path", "/a b:/c", "--requirement", "some.txt")
    command = interpreters.finding(pex, ("CPython>=3.11",))
    assert command == (
        "PEX_SCRIPT=pex3 /python ./pex interpreter inspect --python-path '/a b:/c' "
        "'--interpreter-constraint=CPython>=3.11'"
    )
