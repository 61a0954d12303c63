from __future__ import annotations

import json
import os
import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from kernelwright.codegen.toolchains.wheels import WHEELS
from kernelwright.codegen.trees import all_trees
from kernelwright.codegen.violations import SpecError
from kernelwright.jit.errors import ToolchainError
from kernelwright.jit.toolchains import _EXTRAS, _MADE, InstalledTrees, find_trees, own_digest

ROOT = Path(__file__).resolve().parents[3]


def wheelhouse(folder: Path, wheels: dict[str, str]) -> object:
    """Installed distributions with nothing but metadata, and what finds them."""
    for name, version in wheels.items():
        info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "RECORD").write_text(f"{name}/file,sha256=abc,3\n")

    def find(name: str) -> metadata.Distribution:
        for distribution in metadata.distributions(path=[str(folder)]):
            if distribution.metadata["Name"] == name:
                return distribution
        raise metadata.PackageNotFoundError(name)

    return find


def test_the_command_line_finds_the_same_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELWRIGHT_TREES", raising=False)
    (zig,) = WHEELS["zig"].items()
    trees = InstalledTrees(wheelhouse(tmp_path, dict([zig])))  # type: ignore[arg-type]
    assert trees["zig"] == tmp_path.resolve() and "zig" in list(trees)
    assert "cutlass" not in list(trees) and len(trees) == len(list(trees))
    with pytest.raises(SpecError, match=r"nvidia-cutlass==\S+ is not installed; pip install .*; or name its folder"):
        trees["cutlass"]
    (tmp_path / "trees.json").write_text(json.dumps({"cutlass": "/elsewhere"}))
    monkeypatch.setenv("KERNELWRIGHT_TREES", str(tmp_path / "trees.json"))
    assert InstalledTrees()["cutlass"] == Path("/elsewhere")


def test_trees_are_found_in_installed_wheels(tmp_path: Path) -> None:
    every = {wheel: version for wheels in WHEELS.values() for wheel, version in wheels.items()}
    trees = find_trees(WHEELS, {}, wheelhouse(tmp_path, every), cache=tmp_path / "cache")  # type: ignore[arg-type]
    assert set(trees.roots) == set(WHEELS) == set(trees.stamps)
    assert set(trees.roots.values()) == {tmp_path.resolve()}
    record = next(tmp_path.glob("ziglang-*")) / "RECORD"
    record.write_text("another build of the same version")
    changed = find_trees(WHEELS, {}, wheelhouse(tmp_path, {}), cache=tmp_path / "cache")  # type: ignore[arg-type]
    assert {tree for tree, stamp in trees.stamps.items() if changed.stamps[tree] != stamp} == {"zig"}


def test_every_missing_wheel_is_named_with_what_to_install(tmp_path: Path) -> None:
    find = wheelhouse(tmp_path, {"ziglang": "0.16.0"})
    with pytest.raises(ToolchainError) as caught:
        find_trees(["zig", "clang", "ck_tile"], {}, find, cache=tmp_path)  # type: ignore[arg-type]
    assert str(caught.value).splitlines() == [
        "amd-aiter==0.1.7.post2.dev18 is not installed; pip install 'kernelwright[jit-amd]'",
        "clang-tidy==22.1.8 is not installed; pip install 'kernelwright[jit-amd]' or 'kernelwright[jit-nvidia]'",
        "ziglang 0.16.0 is installed; allowed: 0.17.0; pip install ziglang==0.17.0",
    ]


def test_a_file_may_name_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    header = tmp_path / "own/include/kernelwright/abi.h"
    header.parent.mkdir(parents=True)
    for part in all_trees()["abi"].parts:
        (tmp_path / "own" / part).write_text("one")
    (tmp_path / "trees.json").write_text(json.dumps({"zig": str(tmp_path), "abi": str(tmp_path / "own")}))
    monkeypatch.setenv("KERNELWRIGHT_TREES", str(tmp_path / "trees.json"))
    compiler = tmp_path / "ziglang/zig"
    compiler.parent.mkdir()
    compiler.write_text("one")
    trees = find_trees(["zig", "abi"], cache=tmp_path / "cache")
    assert trees.roots == {"zig": tmp_path, "abi": tmp_path / "own"} and set(trees.stamps) == {"zig"}
    status = compiler.stat()
    compiler.write_text("two")
    os.utime(compiler, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert find_trees(["zig", "abi"], cache=tmp_path / "cache").stamps != trees.stamps
    compiler.unlink()
    compiler.parent.rmdir()
    with pytest.raises(ToolchainError, match="has no ziglang"):
        find_trees(["zig", "abi"], cache=tmp_path / "cache")
    before = own_digest("abi")
    header.with_name("cpu").mkdir()
    (header.with_name("cpu") / "x.hpp").write_text("of another tree")
    assert own_digest("abi") == before and own_digest("zig") == ""
    header.write_text("two")
    assert own_digest("abi") != before


def test_a_checkout_has_to_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELWRIGHT_TREES", raising=False)
    with pytest.raises(
        ToolchainError, match=r"set KERNELWRIGHT_TREES to a JSON file .* or install the kernelwright wheel"
    ):
        find_trees(["abi"], cache=tmp_path)


def test_every_tree_of_plans_can_be_found() -> None:
    assert {name for name, tree in all_trees().items() if not tree.own} == {*WHEELS, *_MADE}


def test_versions_are_those_of_the_pins_and_of_the_extras() -> None:
    pinned: dict[str, str] = {}
    for path in (ROOT / "3rdparty/toolchains").glob("*.txt"):
        pinned.update(re.findall(r"^([a-z0-9-]+)==(\S+)", path.read_text(), re.MULTILINE))
    wanted = {wheel: version for wheels in WHEELS.values() for wheel, version in wheels.items()}
    assert wanted == pinned
    extras = tomllib.loads((ROOT / "packages/kernelwright.toml").read_text())["project"]["optional-dependencies"]
    for names, wheels in ((_EXTRAS[tree], wheels) for tree, wheels in WHEELS.items()):
        for name in names:
            for wheel, version in wheels.items():
                assert f"{wheel}=={version}" in extras[name], f"extra {name} lacks {wheel}"
