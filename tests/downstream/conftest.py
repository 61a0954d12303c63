"""The wheels of this repository, built once, and an environment that holds nothing else."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from e2e.launcher import ROOT, packaged


def run(*command: str | Path, timeout: float = 1800, **options: object) -> subprocess.CompletedProcess[str]:
    """A command whose output is text; its failure is for the caller to judge."""
    words = [str(word) for word in command]
    return subprocess.run(words, capture_output=True, text=True, timeout=timeout, **options)  # type: ignore[call-overload, no-any-return]


def succeed(*command: str | Path, timeout: float = 1800, **options: object) -> str:
    """What a command prints; it must succeed."""
    done = run(*command, timeout=timeout, **options)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def install(shelves: Sequence[Path], folder: Path, *names: str) -> Path:
    """The ``bin`` folder of a new environment into which pip has put wheels of the shelves, without any index."""
    succeed(sys.executable, "-m", "venv", folder / "venv")
    links = [word for shelf in shelves for word in ("--find-links", shelf)]
    command = ("-m", "pip", "--disable-pip-version-check", "install", "-q", "--no-index")
    succeed(folder / "venv/bin/python", *command, *links, *names)
    return folder / "venv/bin"


@pytest.fixture(scope="session")
def numpy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with NumPy's wheel, the one thing that an environment needs and that is not ours."""
    folder = tmp_path_factory.mktemp("numpy")
    pinned = (ROOT / "3rdparty/python/runtime.txt").read_text()
    entry = re.search(r"^numpy==.*?(?=^\S)", pinned, re.MULTILINE | re.DOTALL)
    assert entry
    (folder / "numpy.txt").write_text(entry[0])
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "-q")
    succeed(*pip, "download", "--no-deps", "--require-hashes", "-r", folder / "numpy.txt", "-d", folder)
    return folder


@pytest.fixture(scope="session")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the wheels of kernelwright, its plugin, and its CPU kernels."""
    folder = packaged(tmp_path_factory.mktemp("wheels"), "packages::", "kernels/gemm:cpu_wheels")
    assert len(list(folder.iterdir())) == 4
    return folder


@pytest.fixture(scope="session")
def bare(wheels: Path, numpy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ``bin`` folder of an environment that holds nothing but a kernel wheel and what it needs."""
    return install([wheels, numpy], tmp_path_factory.mktemp("bare"), "kernelwright-kernels-gemm-x86-64-v3")
