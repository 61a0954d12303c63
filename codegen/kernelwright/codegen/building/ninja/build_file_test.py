from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from kernelwright.arch import load
from kernelwright.codegen.building.ninja import build_file
from kernelwright.codegen.building.ninja.build_file import _action_edge, _path, _value, write_ninja
from kernelwright.codegen.selecting.selection import Selection
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.testing.null_backend import NullBackend, NullToolchain, null_templates
from kernelwright.codegen.toolchains.python import files_digest, module_command, python_argv
from kernelwright.codegen.violations import SpecError


@pytest.fixture
def item(monkeypatch: pytest.MonkeyPatch) -> Selection:
    null_templates(monkeypatch)
    monkeypatch.setattr(build_file, "backend_for", lambda arch, toolchains: NullBackend())
    monkeypatch.setattr(
        "kernelwright.codegen.planning.describe.toolchains_for", lambda arch, chosen: {"hip": NullToolchain()}
    )
    arch = load("gfx942")
    kernels = sorted(expand_set("gemm:essential", arch).kernels, key=lambda kernel: kernel.name)
    return Selection(arch, tuple(kernels[:2]), {})


def test_there_is_an_edge_for_each_action_and_manifest(item: Selection, tmp_path: Path) -> None:
    text = write_ninja("g", [item], {}, {}, tmp_path).read_text()
    edges = [line.replace(":", "") for line in text.splitlines() if line.startswith("build ")]
    objects = [f"gfx942/{kernel.name}.o" for kernel in item.kernels]
    assert [edge.split()[1] for edge in edges] == [*objects, "gfx942/libg.so", "gfx942/manifest.json"]
    assert edges[-1].split()[2] == "gfx942/provenance.json"
    assert all(path in edges[-2].split() for path in objects)
    assert text.endswith("default gfx942/manifest.json\n")
    assert "  about = Copy to gfx942/libg.so\n" in text


def test_commands_of_the_generators_python_are_others_with_another_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    command = module_command("kernelwright.files.strict_json", "a.s", memory_mb=5)
    action = command.action("count", "Count", ["a.s"], ["a.json"])
    first = _action_edge(action)
    python = shlex.join(python_argv("kernelwright.files.strict_json", "a.s"))
    assert f"KERNELWRIGHT_GENERATOR={files_digest()} " in first and "OPENBLAS_NUM_THREADS=1 " in first
    assert first.startswith("build a.json: run a.s | __slots.sh\n") and f" run {python}\n" in first
    monkeypatch.setattr(build_file, "files_digest", lambda: "of another one")
    assert _action_edge(action) != first


def test_files_that_did_not_change_are_not_touched(item: Selection, tmp_path: Path) -> None:
    write_ninja("g", [item], {}, {}, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    fewer = Selection(item.arch, item.kernels[:1], {})
    write_ninja("g", [fewer], {}, {}, tmp_path)
    after = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.*")}
    changed = {path.name for path in before if after.get(path) != before[path]}
    (gone,) = item.kernels[1:]
    assert {"build.ninja", "libg.bundle.json", f"{gone.name}.hpp"} <= changed
    assert f"{fewer.kernels[0].name}.hpp" not in changed
    assert not (tmp_path / f"gfx942/{gone.name}.hpp").exists()


def test_words_of_ninja_are_escaped() -> None:
    assert _path("a b:c$d") == "a$ b$:c$$d"
    assert _value("echo $HOME: 1") == "echo $$HOME: 1"
    with pytest.raises(SpecError, match=r"'echo 1\\necho 2' has a line break, which a Ninja file cannot hold"):
        _value("echo 1\necho 2")


def test_a_tree_without_a_folder_is_refused(tmp_path: Path) -> None:
    arch = load("x86_64_v3")
    item = Selection(arch, tuple(expand_set("gemm:essential", arch).kernels)[:1], {})
    with pytest.raises(SpecError, match="no folder was given for tree 'abi'; given: zig"):
        write_ninja("g", [item], {}, {"zig": tmp_path}, tmp_path / "out")
