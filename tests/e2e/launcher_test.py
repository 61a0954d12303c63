"""The launcher on machines that lack something, or configure pip in their own way."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from e2e.workspace import ROOT

_TOOLS = ("bash", "env", "cat", "cut", "sha256sum", "dirname", "mkdir", "mktemp", "mv", "rm", "touch")
_NO_PIP = """
[global]
constraint = /nowhere/constraints.txt
index-url = file:///nowhere
require-virtualenv = true
no-index = true
"""


def launch(
    home: Path, *interpreters: Path, arguments: str = "--version", **more: str
) -> subprocess.CompletedProcess[str]:
    """Run the launcher in an empty home, with nothing on the PATH but these interpreters and what a shell needs."""
    tools = home / "bin"
    tools.mkdir()
    for name in _TOOLS:
        (tools / name).symlink_to(next(p for p in (Path("/usr/bin") / name, Path("/bin") / name) if p.exists()))
    for interpreter in interpreters:
        (tools / interpreter.name).symlink_to(interpreter)
    env = {"PATH": str(tools), "HOME": str(home), "PYENV_ROOT": str(home / "none"), **more}
    return subprocess.run(["./pants", arguments], cwd=ROOT, env=env, capture_output=True, text=True, timeout=300)


def base_interpreter(environment: str, name: str) -> Path:
    """The interpreter that a virtual environment was made from."""
    code = "import sys; print(sys._base_executable)"
    return Path(subprocess.check_output([environment, "-c", code], text=True).strip()).resolve().with_name(name)


def launcher_python() -> Path:
    """The Python 3.9 that the launcher found on this machine."""
    python = subprocess.check_output(["./pants", "--launcher-python"], cwd=ROOT, text=True, env=os.environ).strip()
    return base_interpreter(python, "python3.9")


def newer_python() -> Path:
    """A Python of 3.11 or newer of this machine: the one that runs the lint tools."""
    python = subprocess.check_output([".ci/lint", "--python"], cwd=ROOT, text=True, env=os.environ).strip()
    version = subprocess.check_output([python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], text=True)
    return base_interpreter(python, f"python{version.strip()}")


def mirror(folder: Path) -> Path:
    """A list of downloads as uv reads it, whose only build is this machine's Python 3.9."""
    python = launcher_python()
    version = subprocess.check_output([python, "-c", "import platform; print(platform.python_version())"], text=True)
    archive = folder / "python.tar"
    with tarfile.open(archive, "w") as tar:
        tar.add(python.parents[1], "python", filter=lambda item: None if "/site-packages/" in item.name else item)
    build = {
        **{"name": "cpython", "os": "linux", "libc": "gnu", "arch": {"family": "x86_64", "variant": None}},
        **dict(zip(("major", "minor", "patch"), map(int, version.split(".")), strict=True)),
        **{"prerelease": "", "variant": None, "build": "1", "url": archive.as_uri()},
        "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
    }
    listed = folder / "downloads.json"
    listed.write_text(json.dumps({f"cpython-{version.strip()}-linux-x86_64-gnu": build}))
    return listed


@pytest.mark.parametrize("words", ["codegen/nope_test.py", "nope:tests", "nope::", "tests/nope::"])
def test_a_mistyped_path_is_refused_before_anything_is_set_up(tmp_path: Path, words: str) -> None:
    run = launch(tmp_path, arguments=words)
    assert run.returncode == 2 and run.stderr.startswith(f"pants: there is no {words.partition(':')[0]}, of {words};")
    assert not (tmp_path / ".cache").exists()


@pytest.mark.parametrize(
    "words",
    ["tests/ninja_test.py", "tests::", "3rdparty/python#numpy", "::", "//:house", "--tag=a/b", "!tests/nope", "a*/b"],
)
def test_other_arguments_are_for_pants_to_judge(tmp_path: Path, words: str) -> None:
    run = launch(tmp_path, arguments=words)
    assert "needs Python 3.11" in run.stderr


def test_no_newer_python(tmp_path: Path) -> None:
    run = launch(tmp_path, launcher_python())
    assert run.returncode != 0
    assert run.stderr.strip().startswith("pants: needs Python 3.11 or newer")
    assert not (tmp_path / ".cache").exists()


def test_no_place_for_caches(tmp_path: Path) -> None:
    run = launch(tmp_path, newer_python(), HOME="", XDG_CACHE_HOME="/proc/nothing")
    assert run.returncode == 1 and "cannot write to /proc/nothing/kernelwright-pants; set XDG_CACHE_HOME" in run.stderr


def test_a_wrong_python_is_refused(tmp_path: Path) -> None:
    newer = newer_python()
    run = launch(tmp_path, newer, PANTS_PYTHON=str(newer))
    assert run.returncode != 0
    assert f"PANTS_PYTHON = {newer} is not a Python 3.9" in run.stderr


def test_no_python_39_and_no_mirror(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("{}")
    run = launch(tmp_path, newer_python(), UV_PYTHON_DOWNLOADS_JSON_URL=str(tmp_path / "empty.json"))
    assert run.returncode != 0
    assert "set PANTS_PYTHON to one, or UV_PYTHON_INSTALL_MIRROR to a mirror" in run.stderr.splitlines()[-1]


def test_python_39_from_a_mirror_whatever_pip_is_configured_to_do(tmp_path: Path) -> None:
    (tmp_path / "xdg" / "pip").mkdir(parents=True)
    (tmp_path / "xdg" / "pip" / "pip.conf").write_text(_NO_PIP)
    more = {"XDG_CONFIG_DIRS": str(tmp_path / "xdg"), "PIP_CONSTRAINT": "/nowhere", "PIP_REQUIRE_VIRTUALENV": "1"}
    listed = mirror(tmp_path)
    run = launch(
        tmp_path, newer_python(), UV_PYTHON_DOWNLOADS_JSON_URL=str(listed), arguments="--launcher-python", **more
    )
    assert run.returncode == 0, run.stderr
    assert "installing one in" in run.stderr
    code = "import sys, pants.version; print(sys.version_info[:2], pants.version.VERSION)"
    said = subprocess.check_output([run.stdout.strip(), "-c", code], text=True)
    assert said.strip() == "(3, 9) 2.17.1"
