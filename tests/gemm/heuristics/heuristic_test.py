"""A model of random trees is compiled, loaded and asked through the dispatcher: C and Python agree."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.heuristics.model import Model, read_model, write_model
from kernelwright.codegen.heuristics.schema import schema_of
from kernelwright.codegen.heuristics.testing.random_model import random_content
from kernelwright.codegen.interface.cli import main
from kernelwright.dispatch import Device, Dispatcher, GemmProblem, Heuristic, KernelLibrary, LibraryLoadError
from kernelwright.tile_engine.registry import learnable

pytestmark = pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")

ARCH = Device("cpu").archs[0]


@pytest.fixture(scope="module")
def library() -> KernelLibrary:
    return KernelLibrary.load_for("cpu", os.environ.get("KERNELWRIGHT_KERNELS") or files("gemm") / "cpu_gemm")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = tmp_path_factory.mktemp("model") / "model.json"
    write_model(random_content(7, arch=ARCH), path)
    return read_model(path)


@pytest.fixture(scope="module")
def heuristic(tmp_path_factory: pytest.TempPathFactory) -> Heuristic:
    folder = tmp_path_factory.mktemp("compiled")
    write_model(random_content(7, arch=ARCH), folder / "model.json")
    out = folder / "libpick.so"
    assert main(["heuristic", str(folder / "model.json"), "--output", str(out), "--trees", trees()]) == 0
    return Heuristic(out)


def trees() -> str:
    return os.environ["KERNELWRIGHT_TREES"]


PROBLEMS = [(1, 64, 64), (7, 333, 128), (64, 64, 64), (200, 1100, 300), (4096, 2, 4096)]


@pytest.mark.parametrize(("m", "n", "k"), PROBLEMS)
def test_the_compiled_model_scores_as_the_model_does(
    m: int, n: int, k: int, library: KernelLibrary, model: Model, heuristic: Heuristic
) -> None:
    explained = Dispatcher(library, selection=heuristic).explain(GemmProblem(m, n, k, split_k=0))
    specs = {kernel.identity: kernel.spec for kernel in library.kernels}
    record = {"m": m, "n": n, "k": k, "batch": 1}
    scored = [kernel for kernel in explained.kernels if kernel.score is not None]
    assert len(scored) > 2 and scored[0].identity == explained.chosen.identity  # type: ignore[union-attr]
    for kernel in scored:
        inputs = learnable("gemm").inputs(record, specs[kernel.identity], 0)
        row = schema_of("gemm").values({**inputs, "units": len(os.sched_getaffinity(0))})
        assert kernel.score == pytest.approx(-model.predict(row), abs=1e-9)
    assert explained.reason.startswith(f"best of {len(scored)} by pick")


@pytest.mark.parametrize(
    "problem",
    [GemmProblem(8192, 64, 64, split_k=0), GemmProblem(64, 64, 64, "bf16", split_k=0)],
    ids=["beyond the training data", "another element type"],
)
def test_other_problems_are_left_to_predicted_times(
    problem: GemmProblem, library: KernelLibrary, heuristic: Heuristic
) -> None:
    learned, analytic = Dispatcher(library, selection=heuristic), Dispatcher(library)
    assert learned.select(problem).kernel == analytic.select(problem).kernel
    assert ": not ranked by pick" in learned.select(problem).reason
    assert ": not ranked by pick" in learned.explain(problem).reason


def test_a_library_is_built_with_its_model(model: Model, tmp_path: Path) -> None:
    write_model(random_content(7, arch=ARCH), tmp_path / "pick.json")
    keep = "c.dtype_a == 'fp32' and c.persistent"
    build = ["build", "--set", "gemm:essential", "--arch", ARCH, "--filter", keep, "--name", "gemm", "--trees", trees()]
    assert main([*build, "--model", str(tmp_path / "pick.json"), "--out", str(tmp_path / "out")]) == 0
    library = KernelLibrary.load_for("cpu", tmp_path / "out")
    assert [one["name"] for one in library.manifest.models] == ["pick"]
    assert [one["sha256"] for one in library.manifest.models] == [model.digest]
    explained = Dispatcher(library).explain(GemmProblem(64, 64, 64))
    (best,) = (kernel for kernel in explained.kernels if kernel.rank == 1)
    inputs = learnable("gemm").inputs({"m": 64, "n": 64, "k": 64, "batch": 1}, best_spec(library, best.identity), 0)
    row = schema_of("gemm").values({**inputs, "units": len(os.sched_getaffinity(0))})
    assert explained.ranked_by == "pick" and best.score == pytest.approx(-model.predict(row), abs=1e-9)


def best_spec(library: KernelLibrary, identity: str) -> Mapping[str, Any]:
    """The spec of a kernel of a library."""
    return next(kernel.spec for kernel in library.kernels if kernel.identity == identity)


def test_a_library_that_is_no_model_is_refused(library: KernelLibrary, heuristic: Heuristic, tmp_path: Path) -> None:
    with pytest.raises(LibraryLoadError, match="is no compiled selection model"):
        Heuristic(library.path)
    torn = tmp_path / "libpick.so"
    torn.write_bytes(heuristic.path.read_bytes()[:1000])
    with pytest.raises(LibraryLoadError, match="is no compiled selection model"):
        Heuristic(torn)


def test_an_altered_model_is_not_compiled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.json"
    write_model(random_content(7), path)
    path.write_text(path.read_text().replace('"fp32"', '"fp16"'))
    assert main(["heuristic", str(path), "--output", str(tmp_path / "libx.so"), "--trees", trees()]) == 2
    assert "was altered" in capsys.readouterr().err and not (tmp_path / "libx.so").exists()
