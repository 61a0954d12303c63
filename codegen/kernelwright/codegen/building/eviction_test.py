from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kernelwright.codegen.actions import Action, RenderedFile
from kernelwright.codegen.building.cache_folder import RunningMark, make_private
from kernelwright.codegen.building.eviction import entries, prune
from kernelwright.codegen.building.execute import LocalExecutor
from kernelwright.codegen.building.locks import entry_lock
from kernelwright.codegen.building.sandbox import sandbox_in
from kernelwright.codegen.testing.null_backend import copy_action
from kernelwright.codegen.violations import SpecError

DAY = 86400.0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three results of 1000 bytes, used one, two and three days ago, and a library of 500 bytes, just used."""
    folder = tmp_path / "cache"
    make_private(folder)
    RunningMark(folder).close()
    for days in (1, 2, 3):
        entry = folder / f"actions/{key(days)}"
        entry.mkdir()
        (entry / "out").write_bytes(bytes(1000))
        age(entry, days)
    (folder / f"libraries/{key(0)}").mkdir()
    (folder / f"libraries/{key(0)}/lib.so").write_bytes(bytes(500))
    return folder


def age(path: Path, days: float) -> None:
    os.utime(path, (time.time() - days * DAY,) * 2)


def key(number: int) -> str:
    return f"{number:064x}"


def names(root: Path) -> list[int]:
    return [int(entry.path.name, 16) for entry in entries(root)]


def test_what_was_not_used_for_longest_goes_first(root: Path) -> None:
    assert names(root) == [3, 2, 1, 0]
    done = prune(root, 2500, None)
    assert (done.removed, done.removed_bytes, done.left, done.left_bytes) == (1, 1000, 3, 2500)
    assert done.sizes == {"actions": 2000, "libraries": 500} and names(root) == [2, 1, 0]
    assert not list((root / "sandboxes").iterdir()) and not list((root / "locks").iterdir())


def test_what_is_too_old_goes(root: Path) -> None:
    assert prune(root, None, 1.5 * DAY).removed == 2 and names(root) == [1, 0]
    assert prune(root, 0, None).removed == 2 and names(root) == []


def test_what_is_locked_stays(root: Path) -> None:
    with entry_lock(root / "locks" / key(3), 0), entry_lock(root / f"locks/library-{key(0)}", 0):
        done = prune(root, 0, None)
        assert (done.removed, done.in_use) == (2, 2) and names(root) == [3, 0]
    assert prune(root, 0, None).removed == 2


def test_what_a_running_build_uses_stays(root: Path) -> None:
    mark = RunningMark(root)
    assert prune(root, 0, None).in_use == 1 and names(root) == [0]
    mark.close()
    assert prune(root, 0, None).removed == 1
    assert not list((root / "running").iterdir())


def test_a_build_that_was_killed_keeps_nothing(root: Path) -> None:
    code = (
        "import sys, os; from pathlib import Path; from kernelwright.codegen.building.cache_folder import RunningMark; "
        "mark = RunningMark(Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    )
    subprocess.run([sys.executable, "-c", code, str(root)], check=False)
    assert list((root / "running").iterdir())
    assert prune(root, 0, None).removed == 4 and not list((root / "running").iterdir())


def test_caches_of_compilers_stay_while_a_command_runs(root: Path) -> None:
    (root / "named/zig").mkdir()
    (root / "named/zig/o").write_bytes(bytes(10))
    age(root / "named/zig", 9)
    with sandbox_in(root / "sandboxes"):
        assert prune(root, None, DAY).in_use == 1 and (root / "named/zig/o").exists()
    assert prune(root, None, 8 * DAY).removed == 1 and not (root / "named/zig").exists()


def test_a_run_marks_what_it_uses(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    text, actions = RenderedFile("in", "text"), [copy_action(["in"], "one"), copy_action(["one"], "two")]
    LocalExecutor({}, cache).run([text], actions)
    for entry in entries(cache):
        age(entry.path, 9)
    lines: list[str] = []
    executor = LocalExecutor({}, cache, progress=lines.append)
    paths = executor.run([text], actions)
    assert prune(cache, 0, None).removed == 0, "the executor still uses them"
    del executor
    assert prune(cache, None, DAY).removed == 0 and not lines
    assert paths["two"].read_text() == "text" and prune(cache, 0, None).removed == 3


def test_builds_go_on_while_another_process_evicts(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    make_private(cache)
    RunningMark(cache).close()
    code = (
        "import sys, time; from pathlib import Path; from kernelwright.codegen.building.eviction import prune\n"
        "end = time.time() + 3\nwhile time.time() < end: prune(Path(sys.argv[1]), 0, None)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(cache)]) as evicting:
        runs = 0
        while evicting.poll() is None:
            executor = LocalExecutor({}, cache, jobs=2)
            outputs = tuple(f"out{n}" for n in range(3))
            actions: list[Action] = [copy_action(["in"], output) for output in outputs]
            paths = executor.run([RenderedFile("in", "text")], [*actions, copy_action(list(outputs), "all")])
            assert paths["all"].read_text() == "text" * 3
            runs += 1
    assert evicting.returncode == 0 and runs


def test_a_folder_that_is_no_cache_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "libraries" / key(1)
    folder.mkdir(parents=True)
    with pytest.raises(SpecError, match="is no cache of kernels"):
        prune(tmp_path, 0, None)
    RunningMark(tmp_path).close()
    (tmp_path / "libraries/mine").mkdir()
    assert prune(tmp_path, None, 0.0).removed == 1 and (tmp_path / "libraries/mine").is_dir() and not folder.exists()
