from __future__ import annotations

import sys
import threading
from pathlib import Path

import pytest

from tilewright.codegen.execute import ActionError, LocalExecutor, file_digest, write_atomically
from tilewright.codegen.plan import Action, RenderedFile
from tilewright.codegen.testing import copy_action

TEXT = RenderedFile("a/in.txt", "hello ")


def python(code: str, outputs: tuple[str, ...] = ("out",), **rest: object) -> Action:
    return Action("py", "Run Python", (sys.executable, "-c", code), (), outputs, **rest)  # type: ignore[arg-type]


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def executor(tmp_path: Path, lines: list[str]) -> LocalExecutor:
    abi = tmp_path / "sources/include/tilewright"
    (abi / "cpu").mkdir(parents=True)
    (abi / "abi.h").write_text("abi")
    (abi / "cpu/x.hpp").write_text("cpu")
    roots = {"abi": tmp_path / "sources", "cpu": tmp_path / "sources"}
    return LocalExecutor(roots, tmp_path / "cache", jobs=2, progress=lines.append)


def test_actions_run_in_order_of_their_inputs(executor: LocalExecutor) -> None:
    late = copy_action(["a/mid", "a/in.txt"], "b/out")
    early = copy_action(["a/in.txt", "a/in.txt"], "a/mid")
    found = executor.run([TEXT], [late, early])
    assert found["b/out"].read_text() == "hello hello hello "
    assert found["a/in.txt"].read_text() == "hello "


def test_nothing_runs_twice_until_something_changes(executor: LocalExecutor, lines: list[str]) -> None:
    actions = [copy_action(["a/in.txt"], "one"), copy_action(["one"], "two")]
    first = executor.run([TEXT], actions)
    assert executor.run([TEXT], actions) == first and len(lines) == 2
    executor.run([RenderedFile("a/in.txt", "other")], actions)
    assert len(lines) == 4
    executor.run([TEXT], [copy_action(["a/in.txt"], "one", env=(("A", "B"),))])
    assert len(lines) == 5


def test_unchanged_outputs_stop_a_rebuild(executor: LocalExecutor, lines: list[str]) -> None:
    first = python("open('out', 'w').write('same')", env=(("N", "1"),))
    again = python("open('out', 'w').write('same')", env=(("N", "2"),))
    executor.run([], [first, copy_action(["out"], "next")])
    executor.run([], [again, copy_action(["out"], "next")])
    assert lines == ["Run Python", "Copy to next", "Run Python"]


def test_a_changed_tree_is_noticed(executor: LocalExecutor, tmp_path: Path, lines: list[str]) -> None:
    read = python("open('out', 'w').write(open('__cpu/include/tilewright/cpu/x.hpp').read())", trees=("cpu",))
    assert executor.run([], [read])["out"].read_text() == "cpu"
    (tmp_path / "sources/include/tilewright/abi.h").write_text("of another tree")
    other = LocalExecutor(executor.tree_roots, executor.cache, progress=lines.append)
    other.run([], [read])
    assert len(lines) == 1
    (tmp_path / "sources/include/tilewright/cpu/x.hpp").write_text("changed")
    again = LocalExecutor(executor.tree_roots, executor.cache, progress=lines.append)
    assert again.run([], [read])["out"].read_text() == "changed"


def test_a_tree_shows_its_parts_only(executor: LocalExecutor) -> None:
    code = "import os; open('out', 'w').write(' '.join(sorted(os.listdir('__abi/include/tilewright'))))"
    assert executor.run([], [python(code, trees=("abi",))])["out"].read_text() == "abi.h"


def test_the_environment_is_empty_and_caches_persist(executor: LocalExecutor) -> None:
    code = (
        "import os; p = '__cache_zig/n'; n = int(open(p).read()) if os.path.exists(p) else 0; "
        "open(p, 'w').write(str(n + 1)); names = sorted(set(os.environ) - {'LC_CTYPE'}); "
        "open('out', 'w').write(f'{n} {names}')"
    )
    for count in (0, 1):
        action = python(code, env=(("COUNT", str(count)),), caches=("zig",))
        assert executor.run([], [action])["out"].read_text() == f"{count} ['COUNT']"


def test_a_failing_command_shows_everything_it_printed(executor: LocalExecutor) -> None:
    code = "import sys; print('on stdout'); sys.stderr.write('x' * 5000 + ' on stderr'); sys.exit(3)"
    with pytest.raises(ActionError, match=r"(?s)Run Python: failed with exit code 3.*on stdout.*x{5000} on stderr"):
        executor.run([], [python(code)])


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (python("pass"), "did not write out"),
        (Action("x", "Start nothing", ("/nonexistent/compiler",), (), ("out",)), "cannot be started"),
    ],
)
def test_other_failures(executor: LocalExecutor, action: Action, message: str) -> None:
    with pytest.raises(ActionError, match=message):
        executor.run([], [action])
    assert not list((executor.cache / "sandboxes").iterdir())


def test_impossible_plans_are_refused(executor: LocalExecutor) -> None:
    with pytest.raises(ValueError, match="no action makes nowhere"):
        executor.run([], [copy_action(["nowhere"], "out")])
    with pytest.raises(ValueError, match="no folder was given for tree 'zig'; given: abi, cpu"):
        executor.run([], [python("", trees=("zig",))])
    executor.tree_roots = {"cuda": executor.cache}
    with pytest.raises(ValueError, match="has no nvidia/cu13"):
        executor.run([], [python("", trees=("cuda",))])


def test_memory_bounds_how_many_run_at_once(tmp_path: Path) -> None:
    running, most = 0, 0
    lock = threading.Lock()

    class Counting(LocalExecutor):
        def _execute(self, action: Action, sandbox: Path, ready: object, slot: int) -> None:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            super()._execute(action, sandbox, ready, slot)  # type: ignore[arg-type]
            with lock:
                running -= 1

    actions = [python(f"open('out{n}', 'w')", (f"out{n}",), memory_mb=600) for n in range(4)]
    Counting({}, tmp_path / "one", jobs=4, memory_mb=1000).run([], actions)
    assert most == 1


def test_a_damaged_result_is_made_again(executor: LocalExecutor, lines: list[str]) -> None:
    actions = [copy_action(["a/in.txt"], "one"), copy_action(["one"], "two")]
    good = executor.run([TEXT], actions)
    for damaged, damage in ((good["one"], b"hellO "), (good["two"], b"hello"), (good["a/in.txt"], b"")):
        damaged.write_bytes(damage)
        assert executor.run([TEXT], actions) == good
        assert [path.read_bytes() for path in good.values()] == [b"hello "] * 3
    assert lines == ["Copy to one", "Copy to two", "Copy to one", "Copy to two"]
    for lost in (good["one"], good["two"].parent / "__sha256.json"):
        lost.unlink()
        assert executor.run([TEXT], actions) == good
    assert len(lines) == 6


@pytest.mark.parametrize("path", ["../up", "/absolute", "new\nline", "a//b", "-o", "__zig/x", "a/../../b"])
def test_paths_outside_of_a_sandbox_are_refused(executor: LocalExecutor, path: str) -> None:
    with pytest.raises(ValueError, match=r"output .* allowed: a relative path"):
        executor.run([TEXT], [copy_action(["a/in.txt"], path)])
    with pytest.raises(ValueError, match=r"output .* allowed: a relative path"):
        executor.run([RenderedFile(path, "")], [])
    assert not (executor.cache / "sandboxes").exists()


def test_outputs_may_be_in_any_script(executor: LocalExecutor) -> None:
    assert executor.run([TEXT], [copy_action(["a/in.txt"], "größe/核")])["größe/核"].read_text() == "hello "


def test_files_are_replaced_whole(tmp_path: Path) -> None:
    target = tmp_path / "deep/file"
    write_atomically(target, b"one")
    write_atomically(target, b"two")
    assert target.read_bytes() == b"two" and [item.name for item in target.parent.iterdir()] == ["file"]
    assert file_digest(target) == "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"
    blocked = tmp_path / "folder"
    blocked.mkdir()
    with pytest.raises(OSError):
        write_atomically(blocked, b"x")
    assert not [item for item in tmp_path.iterdir() if item.name.startswith(".")]
