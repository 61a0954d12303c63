"""Caches that cannot be used, and results that another user could change: errors with what to do, exit code 2."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.actions import RenderedFile
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.interface import cli
from kernelwright.codegen.interface.exit_codes import EXIT_BAD_INPUT
from kernelwright.codegen.testing.null_backend import copy_action
from kernelwright.codegen.trees import all_trees
from kernelwright.dispatch import Device, KernelwrightError
from kernelwright.jit import Registry, UntrustedCacheError, UnusableCacheError, command
from kernelwright.jit.libraries import LibraryCache

SPEC = {"op": "gemm", "dtype": "fp32", "layout": "rrr", "tile": [12, 48, 32], "warp_tile": [6, 16, 1]}
STRANGER = 4242
DO = "; allowed: a folder that this user can write to, or one that is not there yet; name another (KERNELWRIGHT_CACHE, "


@pytest.fixture
def trees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Trees with nothing in them: a cache is looked at before anything is compiled."""
    monkeypatch.chdir(tmp_path)
    for tree in all_trees().values():
        for part in tree.parts if not tree.made_of else ():
            path = Path("tree", part.replace("*", "x"))
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.exists():
                path.write_text("")
    roots = {name: str(tmp_path / "tree") for name, tree in all_trees().items() if not tree.made_of}
    Path("trees.json").write_text(json.dumps(roots))
    Path("spec.json").write_text(json.dumps(SPEC))
    monkeypatch.setenv("KERNELWRIGHT_TREES", str(tmp_path / "trees.json"))
    return tmp_path


def registry(cache: Path) -> Registry:
    made = Registry(Device("cpu", arch="x86_64_v3"), cache=cache)
    made.add(SPEC)
    return made


def jit(cache: str) -> list[str]:
    return ["--arch", "x86_64_v3", "--spec", "spec.json", "--cache", cache]


def build(cache: str) -> list[str]:
    return ["build", *jit(cache), "--name", "g", "--trees", "trees.json", "--out", "out"]


NO_FOLDERS: dict[str, tuple[Callable[[Path], Any], str, str]] = {
    "file": (lambda path: path.write_text(""), "", "is no folder"),
    "below a file": (lambda path: path.write_text(""), "/deep/er", "is no folder"),
    "link to nothing": (lambda path: path.symlink_to("nowhere"), "", "is a link to nowhere, where no folder is"),
    "below a link to nothing": (lambda path: path.symlink_to("nowhere"), "/deep", "is a link to nowhere"),
    "link to itself": (lambda path: path.symlink_to(path.name), "", "is a link to cache, where no folder is"),
    "link to a file": (lambda path: path.symlink_to("spec.json"), "", "is a link to spec.json, where no folder is"),
    "pipe": (os.mkfifo, "", "is no folder"),
}


@pytest.mark.parametrize("kind", NO_FOLDERS)
def test_a_cache_that_is_no_folder_is_refused(
    trees: Path, kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    make, below, why = NO_FOLDERS[kind]
    make(trees / "cache")
    cache = f"{trees}/cache{below}"
    expected = f"the cache {cache} cannot be used: {trees}/cache {why}"
    made = registry(Path(cache))
    for ask in (made.missing, made.build):
        with pytest.raises(UnusableCacheError) as caught:
            ask()
        assert str(caught.value).startswith(expected) and DO in str(caught.value)
        assert isinstance(caught.value, KernelwrightError)
    for main, arguments in ((command.main, jit(cache)), (cli.main, build(cache))):
        assert main(arguments) == EXIT_BAD_INPUT
        said = capsys.readouterr().err
        assert said.startswith(f"error: {expected}") and said.count("\n") == 1
    monkeypatch.setenv("KERNELWRIGHT_CACHE", cache)
    assert command.main(jit(cache)[:-2]) == EXIT_BAD_INPUT
    assert not Path("nowhere").exists() and not Path("out").exists()


def as_a_plain_user() -> None:
    """Permissions count for root too once these capabilities are gone; the program that follows does not get them."""
    for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
        ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)  # PR_CAPBSET_DROP


IMPORTED_FROM = os.pathsep.join(map(os.path.abspath, sys.path))  # before a test changes the working directory
READ_ONLY = """
import os
from pathlib import Path
from kernelwright.codegen.interface import cli
from kernelwright.jit import JitDisabledError, UnusableCacheError, command
from kernelwright.jit.cache_errors_test import build, jit, registry
made = registry(Path("cache"))
assert made.missing() == made.kernels
try:
    made.build()
except UnusableCacheError as error:
    print(error)
print(command.main(jit("cache")), cli.main(build("cache")))
os.environ["KERNELWRIGHT_JIT"] = "off"
try:
    made.build()
except JitDisabledError as error:
    print(error.missing == tuple(kernel.name for kernel in made.kernels))
"""


@pytest.mark.parametrize("where", ["", "running", "sandboxes"])
def test_a_cache_that_can_only_be_read_and_lacks_a_kernel_is_refused(trees: Path, where: str) -> None:
    LibraryCache(Path("cache")).check()
    registry(Path("cache")).missing()  # makes its folders
    Path("cache", where).chmod(0o500)
    environment = {**os.environ, "PYTHONPATH": IMPORTED_FROM}
    done = subprocess.run(
        [sys.executable, "-c", READ_ONLY],
        capture_output=True,
        text=True,
        env=environment,
        preexec_fn=as_a_plain_user,
        timeout=120,
    )
    Path("cache", where).chmod(0o700)
    lines = done.stdout.splitlines()
    assert lines[1:] == ["2 2", "True"], done.stderr
    ends = [line.removeprefix("error: ") for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(ends) == 2
    assert all(line.startswith("the cache ") and f": Permission denied{DO}" in line for line in (lines[0], *ends))


def give_away(path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Only root can; for others this process plays another user."""
    if os.geteuid() == 0:
        os.chown(path, STRANGER, -1)
        return f"{path} belongs to user {STRANGER}"
    monkeypatch.setattr(os, "geteuid", lambda: STRANGER)
    return " belongs to user "


@pytest.mark.parametrize("name", ["libjit.so", "manifest.json", "toolchains.json"])
def test_a_file_of_a_library_that_others_can_change_is_refused(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = LibraryCache(tmp_path / "cache")
    folder = tmp_path / "cache/libraries/key"
    folder.mkdir(parents=True, mode=0o700)
    for file in ("libjit.so", "manifest.json", "toolchains.json"):
        (folder / file).write_text("{}")
        (folder / file).chmod(0o644)
    assert cache.find("key", {}) is None  # damaged, but ours
    (folder / name).chmod(0o666)
    with pytest.raises(UntrustedCacheError, match=f"{name} can be written by all users"):
        cache.find("key", {})
    assert LibraryCache(cache.root, shared=True).find("key", {}) is None
    (folder / name).chmod(0o644)
    with pytest.raises(UntrustedCacheError) as caught:
        reason = give_away(folder / name, monkeypatch)
        cache.find("key", {})
    assert reason in str(caught.value)


def test_a_result_that_others_can_change_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = LibraryCache(tmp_path)
    executor = LocalExecutor({}, tmp_path, check=cache.check_result)
    text, action = RenderedFile("a", "text"), copy_action(["a"], "deep/b")
    before = os.umask(0)  # what is written then is closed to others all the same
    try:
        made = executor.run([text], [action])
        assert executor.run([text], [action]) == made and not executor.missing([text], [action])
    finally:
        os.umask(before)
    entry = made["deep/b"].parents[1]
    assert {path.stat().st_mode & 0o022 for path in (entry, *entry.rglob("*"))} == {0}
    for path in (made["deep/b"], entry / "__sha256.json", entry / "deep", made["a"]):
        mode = path.stat().st_mode & 0o777
        path.chmod(0o777)
        with pytest.raises(UntrustedCacheError, match="can be written by all users"):
            executor.run([text], [action])
        path.chmod(mode)
    assert executor.run([text], [action]) == made
    reason = give_away(made["deep/b"], monkeypatch)
    with pytest.raises(UntrustedCacheError, match="belongs to user") as caught:
        executor.run([text], [action])
    assert reason in str(caught.value)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("name", ["trees/x.json", "named/zig/o/x"])
def test_what_compilers_read_of_another_user_is_refused(trees: Path, name: str) -> None:
    path = Path("cache", name)
    registry(Path("cache")).missing()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("")
    os.chown(path, STRANGER, -1)
    with pytest.raises(UntrustedCacheError, match=f"{name} belongs to user {STRANGER}"):
        registry(Path("cache")).build()
