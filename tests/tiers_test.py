"""The part of a family that runs by default, and the rest, in runs of pytest on files of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = "from tiers import pytest_collection_modifyitems, pytest_configure"
MODULE = """
import pytest

@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("seed", range(5))
def test_seeds(seed): pass

@pytest.mark.thorough(keep=1, each="arch")
@pytest.mark.parametrize("arch", ["gfx942", "sm_90a"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_sizes(arch, size): pass

@pytest.mark.thorough(instead="test_seeds")
def test_long(): pass

def test_short(): pass
"""
DEFAULT = {"test_seeds[0]", "test_seeds[1]", "test_sizes[1-gfx942]", "test_sizes[1-sm_90a]", "test_short"}
WHOLE = {
    *(f"test_seeds[{seed}]" for seed in range(5)),
    *(f"test_sizes[{size}-{arch}]" for size in (1, 2, 3) for arch in ("gfx942", "sm_90a")),
    *("test_long", "test_short"),
}


def collected(folder: Path, text: str, tier: str | None, *options: str) -> subprocess.CompletedProcess[str]:
    """What pytest says when it collects a file."""
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "x_test.py").write_text(text)
    ours = ("COV", "PYTEST", "KERNELWRIGHT")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    environment["PYTHONPATH"] = os.pathsep.join(map(os.path.abspath, sys.path))  # relative ones, under Pants
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # half of a start
    if tier is not None:
        environment["KERNELWRIGHT_TIER"] = tier
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-p", "no:cacheprovider", *options, "x_test.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def names(run: subprocess.CompletedProcess[str]) -> list[str]:
    assert run.returncode == 0, run.stdout + run.stderr
    return sorted(line.partition("::")[2] for line in run.stdout.splitlines() if "::" in line)


@pytest.mark.parametrize(
    ("tier", "expected"),
    [(None, DEFAULT), ("", DEFAULT), ("default", DEFAULT), ("thorough", WHOLE - DEFAULT), ("all", WHOLE)],
)
def test_each_case_is_in_one_tier(tmp_path: Path, tier: str | None, expected: set[str]) -> None:
    assert names(collected(tmp_path, MODULE, tier)) == sorted(expected)


@pytest.mark.parametrize("tier", ["default", "thorough"])
def test_folders_with_a_conftest_each_share_a_run(tmp_path: Path, tier: str) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below/conftest.py").write_text(CONFTEST)
    (tmp_path / "below/y_test.py").write_text(MODULE)
    selected = names(collected(tmp_path, MODULE, tier, "below/y_test.py"))
    assert selected == sorted(2 * list(DEFAULT if tier == "default" else WHOLE - DEFAULT))


def test_what_a_name_selects_is_a_part_of_the_tier(tmp_path: Path) -> None:
    assert names(collected(tmp_path, MODULE, None, "-k", "seeds and (1 or 4)")) == ["test_seeds[1]"]


@pytest.mark.parametrize(
    ("mark", "message"),
    [
        ("", "allowed: keep=1 or more"),
        ("keep=0", "allowed: keep=1 or more"),
        ("3", "allowed: keep=1 or more"),
        ('keep=1, instead="test_short"', "allowed: keep=1 or more"),
        ("keep=1, every=True", "allowed: keep=1 or more"),
        ('keep=1, each="device"', "thorough(each='device'); allowed: arch, size"),
    ],
)
def test_a_mark_that_says_nothing_is_refused(tmp_path: Path, mark: str, message: str) -> None:
    run = collected(tmp_path, MODULE.replace('keep=1, each="arch"', mark), None)
    assert run.returncode == 4 and message in run.stdout + run.stderr


def test_an_unknown_tier_is_refused(tmp_path: Path) -> None:
    run = collected(tmp_path, MODULE, "quick")
    assert run.returncode == 4 and "KERNELWRIGHT_TIER is 'quick'; allowed: default, thorough, all" in run.stderr
