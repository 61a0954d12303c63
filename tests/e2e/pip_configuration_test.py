"""Downloads of toolchains on machines that configure pip in their own way, or reach no index."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from e2e import launcher
from e2e.workspace import copy_repository

# The smallest toolchain wheel.
_BUILD = 'toolchain(name="small", trees=["clang"])\n'
_HOSTILE = """
[global]
constraint = /nowhere/constraints.txt
require-virtualenv = true
no-index = true
index-url = file:///nowhere
"""


def download(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Fetch a toolchain into empty caches where a system-wide pip configuration would prevent it."""
    copy_repository(folder / "workspace")
    pants = launcher.command(folder / "workspace")
    (folder / "workspace/small").mkdir()
    (folder / "workspace/small/BUILD").write_text(_BUILD)
    (folder / "etc/pip").mkdir(parents=True)
    (folder / "etc/pip/pip.conf").write_text(_HOSTILE)
    env = {
        **os.environ,
        "PANTS_NAMED_CACHES_DIR": str(folder / "caches"),
        "PANTS_LOCAL_STORE_DIR": str(folder / "store"),
        "PANTS_PANTSD": "false",
        # What /etc/xdg/pip/pip.conf is to pip, for the processes of this build alone.
        "PANTS_SUBPROCESS_ENVIRONMENT_ENV_VARS": f'+["XDG_CONFIG_DIRS={folder / "etc"}"]',
    }
    command = [pants, *options, "export-codegen", "small"]
    return subprocess.run(command, cwd=folder / "workspace", env=env, capture_output=True, text=True, timeout=600)


def test_a_systems_pip_configuration_reaches_no_download(tmp_path: Path) -> None:
    run = download(tmp_path)
    assert run.returncode == 0, run.stderr
    assert list((tmp_path / "workspace/dist").rglob("trees.json"))


def test_a_failed_download_says_what_from_where_and_what_to_set(tmp_path: Path) -> None:
    run = download(tmp_path, "--python-repos-indexes=['https://user:secret@127.0.0.1:9/']")
    assert run.returncode != 0
    (line,) = (line for line in run.stderr.splitlines() if "cannot download toolchain clang" in line)
    assert "(3rdparty/toolchains/clang.txt) from 127.0.0.1:" in line and "secret" not in line
    assert "set [python-repos].indexes" in line and "HTTPS_PROXY" in line
