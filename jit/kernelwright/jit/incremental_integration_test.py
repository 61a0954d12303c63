"""One edited file, and what JIT compiles anew; KERNELWRIGHT_TREES names a JSON of tree folders."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kernelwright.codegen.building.build import read_tree_roots
from kernelwright.codegen.trees import all_trees
from kernelwright.dispatch import Device
from kernelwright.jit import Registry

pytestmark = pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")

SPEC = {"op": "gemm", "dtype": "fp32", "layout": "rrr", "tile": [12, 48, 32], "warp_tile": [6, 16, 1]}
KERNEL, LINK = "Compile gemm_fp32", "Link"
OWN, SHARED = (f"Compile the CPU {name}" for name in ("gemm_launch", "common_library"))


class Sources:
    """A copy of the project's own trees, and a cache that has the library made of them."""

    def __init__(self, folder: Path) -> None:
        given = read_tree_roots(os.environ["KERNELWRIGHT_TREES"])
        self.root, self.cache = folder / "sources", folder / "cache"
        for name in given:
            if all_trees()[name].own:
                shutil.copytree(given[name], self.root, dirs_exist_ok=True)
        self.trees = {name: self.root if all_trees()[name].own else folder for name, folder in given.items()}
        self.build()

    def build(self) -> None:
        """Compile what is missing, and say so on stderr."""
        registry = Registry(Device("cpu", arch="x86_64_v3"), cache=self.cache, trees=self.trees)
        registry.add(SPEC)
        registry.build(2, progress=True)

    def edit(self, file: str, text: str) -> None:
        """Put ``text`` in front of a file."""
        path = self.root / file
        path.write_text(text + path.read_text())


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    return Sources(tmp_path_factory.mktemp("edited"))


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("launchers/cpu/gemm/launch.cpp", {OWN}),
        ("launchers/cpu/common/threads.hpp", {OWN, SHARED}),
        ("include/kernelwright/cpu/gemm/micro/pack.hpp", {OWN, KERNEL}),
        ("include/kernelwright/dispatcher.h", set()),
    ],
)
def test_what_an_edit_compiles(
    sources: Sources, path: str, expected: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    sources.edit(path, "// A comment: no object changes, so nothing is linked.\n")
    sources.build()
    said = capsys.readouterr().err
    assert {step for step in (KERNEL, OWN, SHARED, LINK) if step in said} == expected
