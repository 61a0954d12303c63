"""The pinned headers are rewritten, those of another release refused, and a kernel is the same with and without."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from compiling import tree_roots
from gemm.lean.both_ways import listed
from kernelwright.arch import load
from kernelwright.codegen.lean.made import made_files, reads
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError

TREE = "ck_tile_lean"


def wheel(tree: str = "ck_tile") -> Path:
    return tree_roots()[tree]


@pytest.mark.parametrize("tree", ["ck_tile", "cutlass"])
def test_every_header_of_the_pinned_wheel_is_rewritten(tree: str) -> None:
    lean = f"{tree}_lean"
    files = made_files(lean, wheel(tree))
    upstream = {path[path.index("include/") :]: (wheel(tree) / path).read_text() for path in reads(lean)}
    assert set(files) == set(upstream)
    assert all(files[path] != upstream[path] for path in files)


def test_another_release_is_refused(tmp_path: Path) -> None:
    for path in reads(TREE):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(wheel() / path, tmp_path / path)
    assert made_files(TREE, tmp_path) == made_files(TREE, wheel())
    changed = tmp_path / reads(TREE)[-1]
    changed.write_text(changed.read_text() + "\n")
    with pytest.raises(SpecError, match=r"has the sha256 .*; allowed: .* install the pinned release"):
        made_files(TREE, tmp_path)
    changed.unlink()
    with pytest.raises(SpecError, match=f"the tree ck_tile has no {reads(TREE)[-1]}"):
        made_files(TREE, tmp_path)


@pytest.mark.thorough(instead="test_every_header_of_the_pinned_wheel_is_rewritten")
def test_a_kernel_is_the_same_with_and_without() -> None:
    kernel, *_ = expand_set("gemm:essential", load("gfx90a")).kernels
    lean, stock = (listed(kernel, stock) for stock in (False, True))
    # The others are for pipelines and variants that this kernel has not.
    assert "__ck_tile_lean/include/ck_tile/core/tensor/tile_window.hpp" in lean.headers
    assert not [header for header in stock.headers if header.startswith("__ck_tile_lean/")]
    assert lean.output == stock.output
