"""examples/downstream as a repository of its own: stock Pants, our wheels, and nothing of this tree."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from downstream.conftest import run, succeed
from e2e import launcher
from e2e.launcher import ROOT


@dataclass(frozen=True)
class Stock:
    """A copy of the example and a Pants that knows nothing of ours but what its pants.toml says."""

    root: Path
    launcher: Path
    environment: dict[str, str]

    def pants(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One Pants call, which must succeed."""
        done = self.tried(*arguments)
        assert done.returncode == 0, done.stderr
        return done

    def tried(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """One Pants call, which may fail."""
        return run(self.launcher, *arguments, cwd=self.root, env=self.environment)


@pytest.fixture(scope="module")
def stock(wheels: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stock]:
    root = tmp_path_factory.mktemp("downstream") / "acme"
    shutil.copytree(ROOT / "examples/downstream", root)
    shutil.copytree(wheels, root / "wheels")
    environment = {
        **{name: os.environ[name] for name in ("HOME", "PATH", "XDG_CACHE_HOME", "PYENV_ROOT") if name in os.environ},
        **launcher.environment(),
    }
    workspace = Stock(root, launcher.named() or launcher.PANTS_2_17, environment)
    workspace.pants("--tag=-slow", "package", "test", "::")
    yield workspace
    for file in (*(root / ".pids").rglob("pid"), *(root / ".pants.d/pids").rglob("pid")):
        if file.read_text().strip().isdigit():
            run("kill", file.read_text().strip())


def test_its_pex_multiplies_with_kernels_of_both_repositories(stock: Stock) -> None:
    said = succeed(stock.root / "dist/acme/multiply.pex", cwd="/")
    assert re.fullmatch(r"right: .* by one of \d+ kernels\n", said)


def test_its_wheels_install_beside_ours(stock: Stock, bare: Path) -> None:
    dist = stock.root / "dist"
    names = sorted(path.name for path in dist.glob("*.whl"))
    assert names == [
        "acme_kernels_gemm_x86_64_v3-1.0-py3-none-manylinux_2_17_x86_64.whl",
        "acme_multiply-1.0-py3-none-manylinux_2_17_x86_64.whl",
    ]
    succeed(bare / "python", "-m", "pip", "install", "-q", "--no-index", "--no-deps", *(dist / name for name in names))
    assert succeed(bare / "acme-multiply", cwd="/").startswith("right: ")
    code = 'from kernelwright.dispatch import *; print(KernelLibrary.load_installed("cpu", "gemm", "acme_kernels"))'
    assert succeed(bare / "python", "-c", code, cwd="/") == "kernels for x86_64_v3: 3 kernels\n"


def test_its_kernels_are_measured_by_the_engine_of_our_wheel(stock: Stock) -> None:
    problems = [{"m": 33, "n": 17, "k": 65, "layout": layout, "dtype": "fp32"} for layout in ("rrr", "rcr", "ccr")]
    (stock.root / "problems.json").write_text(json.dumps(problems))
    stock.pants("bench", "--problems=problems.json", "acme:kernels", "--", "--duration", "0.001", "--rounds", "1")
    with (stock.root / "dist/bench/acme.kernels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    right = [row for row in rows if row["status"] == "ok"]
    assert len(rows) == 9 and {row["problem_idx"] for row in right} == {"0", "1"}  # nothing serves ccr
    assert {row["status"] for row in rows} == {"ok", "refused"}
    assert all(float(row["latency_ms"]) > 0 and float(row["error"]) <= 1 for row in right)
    again = stock.tried("bench", "--problems=problems.json", "acme:kernels")
    assert again.returncode == 2 and "add --append or --resume" in again.stderr


def test_a_mistake_is_explained_as_at_home(stock: Stock) -> None:
    (stock.root / "bad").mkdir()
    (stock.root / "bad/BUILD").write_text(
        'gemm_kernel(name="x", arch="x86_64_v9", dtype="fp32")\nkernel_library(name="l", dependencies=[":x"])\n'
    )
    done = stock.tried("package", "bad:l")
    shutil.rmtree(stock.root / "bad")
    assert done.returncode != 0 and "bad:x" in done.stderr and "x86_64_v9" in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_is_built_twice(stock: Stock) -> None:
    # The last test: a daemon whose options change starts again.
    again = stock.pants("--keep-sandboxes=always", "package", "acme:kernels", "acme:kernel_wheels")
    assert "Preserving" not in again.stderr
