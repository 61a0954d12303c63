"""docs/install.md and docs/getting_started.md, to the letter, for those who have wheels and no checkout."""

from __future__ import annotations

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from downstream.conftest import succeed
from e2e import launcher
from e2e.launcher import ROOT
from pages.pages import DOCS, blocks, script

PAGE = DOCS / "getting_started.md"


@pytest.fixture
def reader(wheels: Path, tmp_path: Path) -> Path:
    """A folder with the wheels, and the programs that the page takes for granted."""
    shutil.copytree(wheels, tmp_path / "wheels")
    programs = tmp_path / "programs"
    programs.mkdir()
    for name, started in (("python3", sys.executable), ("pants", launcher.named() or launcher.PANTS_2_17)):
        (programs / name).write_text(f'#!/bin/sh\nexec {started} "$@"\n')
        (programs / name).chmod(0o755)
    return tmp_path


def follow(reader: Path, page: Path, heading: str) -> str:
    """What the commands of a section print."""
    names = ("HOME", "XDG_CACHE_HOME", "PYENV_ROOT")
    environment = {name: os.environ[name] for name in names if name in os.environ} | launcher.environment()
    environment["PATH"] = f"{reader / 'programs'}:{os.environ['PATH']}"
    # A daemon would outlive the test; the page's last block does without one, too.
    environment["PANTS_PANTSD"] = "false"
    return succeed("bash", "-c", script(page, heading), cwd=reader, env=environment)


def test_a_framework_user(reader: Path) -> None:
    said = follow(reader, PAGE, "Framework user")
    assert "gemm for x86_64_v3: " in said
    error = re.search(r"^largest error (\S+)$", said, re.MULTILINE)
    assert error and float(error[1]) < 1e-3


def test_a_performance_engineer(reader: Path) -> None:
    said = follow(reader, PAGE, "Performance engineer")
    assert "gemm for x86_64_v3: " in said
    assert "<svg" in (reader / "report.html").read_text()


def test_a_build_engineer(reader: Path) -> None:
    assert follow(reader, PAGE, "Build engineer").splitlines()[-1:] == ["provenance.json"]
    assert blocks(PAGE, "toml")[0].text.partition("\n")[2] == (ROOT / "examples/downstream/pants.toml").read_text()


def test_the_wheels_are_installed_as_the_page_of_installation_says(reader: Path) -> None:
    assert "kernelwright" in follow(reader, DOCS / "install.md", "Install wheels")


def test_the_helper_of_the_page_of_migrating_runs(bare: Path) -> None:
    (block,) = blocks(DOCS / "migrating.md", "sh", "`gpu_helper`")
    said = succeed("bash", "-c", block.text, cwd="/", env={"PATH": f"{bare}:{os.environ['PATH']}"})
    assert '"status": "success"' in said


def test_the_wheels_are_those_that_a_checkout_makes(wheels: Path) -> None:
    build, *_ = blocks(DOCS / "install.md", "sh", "Wheels from a checkout")[0].text.splitlines()
    # The fixture builds these targets.
    assert build == "./pants package packages:: kernels/gemm:cpu_wheels"
    assert {path.name.partition("-")[0] for path in wheels.iterdir()} == {
        "kernelwright",
        "kernelwright_pants",
        "kernelwright_kernels_gemm_x86_64_v3",
        "kernelwright_kernels_gemm_x86_64_v4",
    }
