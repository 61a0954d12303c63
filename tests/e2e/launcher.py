"""The Pants that tests of whole builds run: ``./pants``, or the launcher that ``KERNELWRIGHT_TEST_LAUNCHER`` names.

Such a launcher runs in the current folder, as the official one does, which takes its version from ``PANTS_VERSION``.
Workspaces then have the plugin from its wheels, as those of users.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = "KERNELWRIGHT_TEST_LAUNCHER"
PANTS_2_17 = ROOT / "tests/compatibility/pants_2_17"
PLUGIN = ("packages:kernelwright", "packages:kernelwright-pants")


def named() -> Path | None:
    """The launcher that the environment names; None without one. Raises ValueError if it cannot be executed."""
    path = os.environ.get(VARIABLE)
    if not path:
        return None
    program = Path(path).resolve()
    if not os.access(program, os.X_OK) or program.is_dir():
        raise ValueError(f"{VARIABLE} is {path!r}, which is no program; name a launcher of Pants by its path")
    return program


def command(workspace: Path) -> str:
    """What starts Pants in a copy of this repository, which gets the plugin from its wheels if a launcher is named."""
    launcher = named()
    if launcher is None:
        return "./pants"
    options = workspace / "pants.toml"
    options.write_text(with_plugin_from_wheels(options.read_text(), shelf()))
    return str(launcher)


def environment() -> dict[str, str]:
    """The variables of the environment that a launcher needs where tests pass no others."""
    return {name: os.environ[name] for name in ("PANTS_VERSION",) if name in os.environ}


def with_plugin_from_wheels(options: str, wheels: Path) -> str:
    """This repository's ``pants.toml`` with the plugin out of a folder of wheels instead of ``rules``."""
    source = 'pythonpath = ["%(buildroot)s/rules"]\n'
    assert options.count(source) == 1 and "\n[python-repos]\n" not in options
    version = re.search(r"kernelwright_pants-([^-]+)-", " ".join(path.name for path in wheels.iterdir()))
    assert version, f"{wheels} lacks the plugin"
    plugin = f'plugins = ["kernelwright-pants=={version[1]}"]\n'
    return f'{options.replace(source, plugin)}\n[python-repos]\nfind_links = ["{wheels.as_uri()}"]\n'


def packaged(folder: Path, *targets: str) -> Path:
    """Builds wheels of this repository, of the release tier too; a folder with them and nothing else."""
    built = subprocess.run(
        ["./pants", "--no-pantsd", "--tag=[]", "package", *targets],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=6 * 3600,
    )
    assert built.returncode == 0, built.stderr
    for name in re.findall(r"Wrote (dist/\S+\.whl)", built.stderr):
        shutil.copy(ROOT / name, folder)
    return folder


@functools.cache
def shelf() -> Path:
    """A folder with the wheels of the generator and the plugin.

    Its path is that of their contents, since it is a part of the commands that download packages, whose results
    workspaces share.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "kernelwright-tests")
    cache.mkdir(parents=True, exist_ok=True)
    new = packaged(Path(tempfile.mkdtemp(dir=cache)), *PLUGIN)
    new.chmod(0o755)
    digest = hashlib.sha256("".join(sorted(map(sha256, new.iterdir()))).encode()).hexdigest()
    kept = cache / f"wheels-{digest[:16]}"
    if kept.exists():
        shutil.rmtree(new)
    else:
        new.rename(kept)
    return kept


def sha256(file: Path) -> str:
    """The digest of a file, in hexadecimal."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
