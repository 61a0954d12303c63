from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelwright.pants.generator_data import generator_data
from kernelwright.pants.util_rules.trees import (
    LICENSE_TREES,
    MADE_TREES,
    SOURCE_TREES,
    WHEEL_TREES,
    WheelTree,
    license_trees,
)


@pytest.mark.parametrize("tree", WHEEL_TREES.values(), ids=list(WHEEL_TREES))
def test_every_wheel_is_pinned_with_a_hash(tree: WheelTree) -> None:
    text = Path(f"3rdparty/toolchains/{tree.pins}.txt").read_text()
    pinned = dict(re.findall(r"^([\w-]+)==(\S+) --hash=sha256:[0-9a-f]{64}$", text, flags=re.MULTILINE))
    wheels = dict(wheel.split("-")[:2] for wheel, _ in tree.wheels)
    assert {name.replace("-", "_"): version for name, version in pinned.items()} == wheels
    assert "http" not in text


@pytest.mark.parametrize("tree", LICENSE_TREES.values(), ids=list(LICENSE_TREES))
def test_license_texts_come_from_the_wheels_whose_code_is_compiled_in(tree: WheelTree) -> None:
    sources = {wheel for other in WHEEL_TREES.values() if other.pins == tree.pins for wheel, _ in other.wheels}
    assert {wheel for wheel, _ in tree.wheels} <= sources


def test_every_wheel_whose_code_is_in_libraries_has_a_license_text() -> None:
    assert set(license_trees(generator_data()["trees"])) == set(LICENSE_TREES)
    assert license_trees(["zig", "clang", "abi", "cpu_gemm"]) == ()


@pytest.mark.parametrize("name", MADE_TREES)
def test_what_is_made_is_made_of_files_of_a_wheel(name: str) -> None:
    source, reads = MADE_TREES[name]
    folders = [folder for _, folders in WHEEL_TREES[source].wheels for folder in folders]
    assert reads and all(path.startswith(tuple(f"{folder}/" for folder in folders)) for path in reads)


def test_the_plugin_knows_where_each_tree_of_the_generator_comes_from() -> None:
    assert {*WHEEL_TREES, *SOURCE_TREES, *MADE_TREES} == set(generator_data()["trees"])


@pytest.mark.parametrize("name", SOURCE_TREES)
def test_every_glob_of_our_headers_matches_a_file(name: str) -> None:
    root = Path("dispatcher_cpp")
    first, *further = SOURCE_TREES[name]
    required = [first] if name in generator_data()["operations"] else [first, *further]  # a C ABI may be one header
    assert all(any(path.is_file() for path in root.glob(glob.replace("/**", "/**/*"))) for glob in required)
