"""The launcher on machines that lack something: one clear sentence, nothing left behind."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from e2e.workspace import ROOT


def launch(home: Path, *interpreters: Path) -> subprocess.CompletedProcess[str]:
    tools = home / "bin"
    tools.mkdir()
    for name in ("bash", "env", "cat", "cut", "sha256sum", "dirname", "mkdir", "mktemp", "rm"):
        (tools / name).symlink_to(next(p for p in (Path("/usr/bin") / name, Path("/bin") / name) if p.exists()))
    for interpreter in interpreters:
        (tools / interpreter.name).symlink_to(interpreter)
    env = {"PATH": str(tools), "HOME": str(home), "PYENV_ROOT": str(home / "none")}
    command = ["./pants", "--version"]
    return subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=60)


def launcher_python() -> Path:
    """The interpreter that the launcher found on this machine, under the name it looks for."""
    found = subprocess.check_output(["./pants", "--launcher-python"], cwd=ROOT, text=True, env=os.environ).strip()
    code = "import sys; print(sys._base_executable)"
    return Path(subprocess.check_output([found, "-c", code], text=True).strip()).with_name("python3.9")


def test_no_python_39(tmp_path: Path) -> None:
    run = launch(tmp_path)
    assert run.returncode != 0
    assert run.stderr.strip() == (
        "pants: needs Python 3.9 with venv to run Pants; put python3.9 on the PATH or set PANTS_PYTHON to it."
    )
    assert not (tmp_path / ".cache").exists()


def test_no_newer_python(tmp_path: Path) -> None:
    run = launch(tmp_path, launcher_python())
    assert run.returncode != 0
    assert run.stderr.strip().startswith("pants: needs Python 3.11 or newer")
    assert not (tmp_path / ".cache").exists()
