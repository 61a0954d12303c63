"""The wheels of this repository, built once, and an environment that holds nothing else."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.workspace import ROOT


def run(*command: str | Path, timeout: float = 1800, **options: object) -> subprocess.CompletedProcess[str]:
    """A command whose output is text; its failure is for the caller to judge."""
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, **options)  # type: ignore[call-overload, no-any-return]


def succeed(*command: str | Path, timeout: float = 1800, **options: object) -> str:
    """What a command prints; it must succeed."""
    done = run(*command, timeout=timeout, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of tilewright, its plugin, and its CPU kernels."""
    folder = tmp_path_factory.mktemp("wheels")
    built = run("./pants", "package", "packages::", "kernels/gemm:cpu_wheels", cwd=ROOT)
    assert built.returncode == 0, built.stderr
    for name in re.findall(r"Wrote (dist/\S+\.whl)", built.stderr):
        shutil.copy(ROOT / name, folder)
    assert len(list(folder.iterdir())) == 4
    return folder


@pytest.fixture(scope="session")
def bare(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of an environment into which pip has put a kernel wheel, without any index.

    NumPy's wheel, the one thing that is not ours, is laid beside the others first.
    """
    folder = tmp_path_factory.mktemp("bare")
    shelf = folder / "shelf"
    shutil.copytree(wheels, shelf)
    pinned = (ROOT / "3rdparty/python/runtime.txt").read_text()
    numpy = re.search(r"^numpy==.*?(?=^\S)", pinned, re.MULTILINE | re.DOTALL)
    assert numpy
    (folder / "numpy.txt").write_text(numpy[0])
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
    succeed(*pip, "download", "--no-deps", "--require-hashes", "-r", folder / "numpy.txt", "-d", shelf)
    succeed(sys.executable, "-m", "venv", folder / "venv")
    install = ("-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-index", "--find-links", shelf)
    succeed(folder / "venv/bin/python", *install, "tilewright-kernels-gemm-x86-64-v3")
    return folder / "venv/bin"
