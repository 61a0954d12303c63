"""Ninja builds what the local executor builds, from the file that ``kernelwright build --ninja`` writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import ninja
import pytest

from kernelwright.codegen.interface.cli import main
from kernelwright.dispatch.tools.store_check import Found, check_folders

ARCH = "x86_64_v3"
SPEC = {"op": "gemm", "dtype": "fp32", "layout": "rrr", "tile": [48, 240, 256], "warp_tile": [6, 16, 1]}
HEADER = "include/kernelwright/cpu/gemm/micro/pack.hpp"


@pytest.fixture(scope="module")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toolchain, and a copy of our headers that a test may change."""
    folder = tmp_path_factory.mktemp("trees")
    own = folder / "own"
    for part in ("include", "launchers"):
        shutil.copytree(Path(__file__).parents[1] / "dispatcher_cpp" / part, own / part)
    known = json.loads(Path(os.environ["KERNELWRIGHT_TREES"]).read_text())
    roots = {name: str(own if name != "zig" else Path(root).resolve()) for name, root in known.items()}
    (folder / "trees.json").write_text(json.dumps(roots))
    return folder


def build(trees: Path, out: Path, specs: list[dict[str, object]], *options: str) -> None:
    (trees / "specs.json").write_text(json.dumps(specs))
    chosen = ["--arch", ARCH, "--spec", str(trees / "specs.json"), "--name", "g"]
    assert main(["build", *chosen, "--trees", str(trees / "trees.json"), "--out", str(out), *options]) == 0


def run(out: Path) -> list[str]:
    """What Ninja ran, by its descriptions."""
    command = [str(Path(ninja.BIN_DIR, "ninja")), "-C", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return [line.partition("] ")[2] for line in done.stdout.splitlines() if line.startswith("[")]


def assert_same_files(*builds: Path) -> None:
    """Libraries, manifests and statements are the same to the byte."""
    for name in ("libg.so", "manifest.json", "provenance.json"):
        one, other = (build / ARCH / name for build in builds)
        assert one.read_bytes() == other.read_bytes(), name


@pytest.mark.thorough(instead="codegen/kernelwright/codegen/building/ninja/build_file_test.py")
def test_ninja_builds_the_same_bytes_and_only_what_changed(trees: Path, tmp_path: Path) -> None:
    of_ninja, of_ours = tmp_path / "of ninja", tmp_path / "of_ours"
    build(trees, of_ninja, [SPEC], "--ninja")
    assert not (of_ninja / ARCH / "libg.so").exists()
    assert len(run(of_ninja)) == 7
    build(trees, of_ours, [SPEC])
    assert_same_files(of_ninja, of_ours)
    assert run(of_ninja) == []

    build(trees, of_ninja, [SPEC, {**SPEC, "layout": "rcr"}], "--ninja")
    again = run(of_ninja)
    assert [what for what in again if what.startswith("Compile gemm")] == [what for what in again if "_rcr_" in what]
    assert f"Link {ARCH}/libg.so" in again and len(again) == 4  # kernel, table, link, description

    header = trees / "own" / HEADER
    os.utime(header)
    assert run(of_ninja) == ["Digest headers"]
    header.write_text(header.read_text() + "// changed\n")
    changed = run(of_ninja)
    assert sum(what.startswith("Compile gemm") for what in changed) == 2
    assert f"Compile {ARCH}/g_table.c" not in changed
    build(trees, of_ours, [SPEC, {**SPEC, "layout": "rcr"}])
    assert_same_files(of_ninja, of_ours)
    check_folders([of_ninja, of_ours], verified := Found())  # what doctor --verify does
    assert (verified.kernels, verified.unknown, verified.problems) == (2, 0, [])

    stamp = of_ninja / "__trees/zig.digest"
    stamp.write_text("of another toolchain\n")
    with pytest.raises(AssertionError, match="the tree zig changed since Ninja or kernelwright read it"):
        run(of_ninja)


def test_what_cannot_be_compiled_stops_ninja(trees: Path, tmp_path: Path) -> None:
    build(trees, tmp_path / "out", [SPEC], "--ninja")
    (header,) = (tmp_path / "out" / ARCH).glob("gemm_*.hpp")
    header.write_text("#error broken\n")
    with pytest.raises(AssertionError, match="error: broken"):
        run(tmp_path / "out")
    assert not (tmp_path / "out" / ARCH / "manifest.json").exists()
