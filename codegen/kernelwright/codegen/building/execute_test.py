from __future__ import annotations

import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernelwright.codegen.actions import Action, RenderedFile
from kernelwright.codegen.building.execute import (
    ActionError,
    BuildError,
    LocalExecutor,
    Watcher,
    file_digest,
    write_atomically,
)
from kernelwright.codegen.building.locks import entry_lock
from kernelwright.codegen.building.store import Cost
from kernelwright.codegen.resources.amd import MODULE as COUNTING
from kernelwright.codegen.resources.amd.command import counts_text
from kernelwright.codegen.resources.testing.loop import ASSEMBLY
from kernelwright.codegen.testing.null_backend import copy_action
from kernelwright.codegen.toolchains.python import module_command

TEXT = RenderedFile("a/in.txt", "hello ")


def python(code: str, outputs: tuple[str, ...] = ("out",), **rest: object) -> Action:
    return Action("py", "Run Python", (sys.executable, "-c", code), (), outputs, **rest)  # type: ignore[arg-type]


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def executor(tmp_path: Path, lines: list[str]) -> LocalExecutor:
    abi = tmp_path / "sources/include/kernelwright"
    (abi / "cpu/common").mkdir(parents=True)
    (abi / "abi.h").write_text("abi")
    for name in ("checks", "dtypes", "epilogue"):
        (abi / f"{name}.h").write_text(name)
    (abi / "cpu/common/x.hpp").write_text("cpu")
    roots = {"abi": tmp_path / "sources", "cpu_common": tmp_path / "sources"}
    return LocalExecutor(roots, tmp_path / "cache", jobs=2, progress=lines.append)


def test_actions_run_in_order_of_their_inputs(executor: LocalExecutor) -> None:
    late = copy_action(["a/mid", "a/in.txt"], "b/out")
    early = copy_action(["a/in.txt", "a/in.txt"], "a/mid")
    paths = executor.run([TEXT], [late, early])
    assert paths["b/out"].read_text() == "hello hello hello "
    assert paths["a/in.txt"].read_text() == "hello "


def test_nothing_runs_twice_until_something_changes(executor: LocalExecutor, lines: list[str]) -> None:
    actions = [copy_action(["a/in.txt"], "one"), copy_action(["one"], "two")]
    first = executor.run([TEXT], actions)
    assert executor.run([TEXT], actions) == first and len(lines) == 2
    executor.run([RenderedFile("a/in.txt", "other")], actions)
    assert len(lines) == 4
    executor.run([TEXT], [copy_action(["a/in.txt"], "one", env=(("A", "B"),))])
    assert len(lines) == 5


def test_commands_of_the_generators_python_run_again_when_its_files_change(
    executor: LocalExecutor, lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assembly = RenderedFile("a/in.s", ASSEMBLY)
    command = module_command(COUNTING, "a/in.s", "a/out.json", "gfx942", "4", "one", memory_mb=100)
    actions = [command.action("count", "Count", ["a/in.s"], ["a/out.json"])]
    paths = executor.run([assembly], actions)
    assert paths["a/out.json"].read_text() == counts_text(ASSEMBLY, "gfx942", 4, ["one"])
    assert executor.run([assembly], actions) == paths and executor.missing([assembly], actions) == []
    monkeypatch.setattr("kernelwright.codegen.building.execute.files_digest", lambda: "of another generator")
    assert executor.missing([assembly], actions) == actions
    executor.run([assembly, TEXT], [*actions, copy_action(["a/in.txt"], "one")])
    assert sorted(lines) == ["Copy to one", "Count", "Count"]  # two jobs: either starts first


def test_unchanged_outputs_stop_a_rebuild(executor: LocalExecutor, lines: list[str]) -> None:
    first = python("open('out', 'w').write('same')", env=(("N", "1"),))
    again = python("open('out', 'w').write('same')", env=(("N", "2"),))
    executor.run([], [first, copy_action(["out"], "next")])
    executor.run([], [again, copy_action(["out"], "next")])
    assert lines == ["Run Python", "Copy to next", "Run Python"]


def test_a_changed_tree_is_noticed(executor: LocalExecutor, tmp_path: Path, lines: list[str]) -> None:
    read = python(
        "open('out', 'w').write(open('__cpu_common/include/kernelwright/cpu/common/x.hpp').read())",
        trees=("cpu_common",),
    )
    assert executor.run([], [read])["out"].read_text() == "cpu"
    (tmp_path / "sources/include/kernelwright/abi.h").write_text("of another tree")
    other = LocalExecutor(executor.tree_roots, executor.cache, progress=lines.append)
    other.run([], [read])
    assert len(lines) == 1
    (tmp_path / "sources/include/kernelwright/cpu/common/x.hpp").write_text("changed")
    again = LocalExecutor(executor.tree_roots, executor.cache, progress=lines.append)
    assert again.run([], [read])["out"].read_text() == "changed"


def test_a_tree_that_changes_between_two_runs_is_noticed(executor: LocalExecutor, tmp_path: Path) -> None:
    read = python("open('out', 'w').write(open('__abi/include/kernelwright/abi.h').read())", trees=("abi",))
    assert executor.run([], [read])["out"].read_text() == "abi"
    (tmp_path / "sources/include/kernelwright/abi.h").write_text("changed")
    assert executor.missing([], [read]) == [read]
    assert executor.run([], [read])["out"].read_text() == "changed"


@pytest.mark.parametrize("status", [0, 1])
def test_a_tree_that_changes_while_a_command_reads_it_leaves_no_result(
    executor: LocalExecutor, tmp_path: Path, status: int
) -> None:
    """Neither a result nor a failure, which would stand for the files that were there before."""
    header, tamper = tmp_path / "sources/include/kernelwright/abi.h", tmp_path / "tamper"
    code = f"""
import os, sys
tampers = os.path.exists({str(tamper)!r})
if tampers:
    os.unlink({str(tamper)!r})
    open({str(header)!r}, 'w').write('another release')
open('out', 'w').write(open('__abi/include/kernelwright/abi.h').read())
sys.exit({status} if tampers else 0)
"""
    read = python(code, trees=("abi",))
    tamper.touch()
    with pytest.raises(ActionError, match="the tree abi, whose files changed while commands ran; build again"):
        executor.run([], [read])
    header.write_text("abi")
    assert executor.run([], [read])["out"].read_text() == "abi"


def test_a_tree_shows_its_parts_only(executor: LocalExecutor) -> None:
    code = "import os; open('out', 'w').write(' '.join(sorted(os.listdir('__abi/include/kernelwright'))))"
    assert executor.run([], [python(code, trees=("abi",))])["out"].read_text() == "abi.h checks.h dtypes.h epilogue.h"


def test_another_process_may_mount_a_tree_at_the_same_time(
    executor: LocalExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = python("open('out', 'w').write(open('__abi/include/kernelwright/abi.h').read())", trees=("abi",))
    executor.run([], [read])
    monkeypatch.setattr(Path, "is_symlink", lambda path: False)  # as it was a moment ago
    again = LocalExecutor(executor.tree_roots, executor.cache)
    assert again.run([], [read])["out"].read_text() == "abi"


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
        def _execute(self, *arguments: Any) -> Cost:
            nonlocal running, most
            with lock:
                running += 1
                most = max(most, running)
            cost = super()._execute(*arguments)
            with lock:
                running -= 1
            return cost

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


def failing(code: str = "import sys; sys.exit('error: no such tile')", **rest: object) -> Action:
    return python(code, **rest)  # type: ignore[arg-type]


def test_a_failure_is_remembered_until_an_input_changes(executor: LocalExecutor, lines: list[str]) -> None:
    count = "open(__import__('os').path.join('__cache_zig', 'ran'), 'a').write('x'); "
    refuse = "text = open('a/in.txt').read(); sys.exit(text and 'error: ' + text); "
    action = Action("py", "Run Python", (sys.executable, "-c", f"import sys; {count}{refuse}"), ("a/in.txt",), ("out",))
    action = Action(**{**vars(action), "caches": ("zig",)})
    for _ in range(3):
        with pytest.raises(ActionError, match="error: hello") as caught:
            executor.run([TEXT], [action])
    assert (executor.cache / "named/zig/ran").read_text() == "x" and lines == ["Run Python"]
    assert "nothing that it reads has changed; to run it again remove" in str(caught.value)
    with pytest.raises(ActionError, match="error: other"):
        executor.run([RenderedFile("a/in.txt", "other")], [action])
    executor.retry_failed = True
    with pytest.raises(ActionError, match="error: hello"):
        executor.run([TEXT], [action])
    executor.retry_failed = False
    assert caught.value.record is not None
    caught.value.record.write_text("{ torn")  # damaged: run again
    with pytest.raises(ActionError, match="error: hello"):
        executor.run([TEXT], [action])
    assert (executor.cache / "named/zig/ran").read_text() == "xxxx"


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit('fatal error: error in backend: IO failure: No space left on device')",
        "import sys; sys.exit('error: OutOfMemory')",
        "import os; os.kill(os.getpid(), 9)",
        "import sys; sys.exit('g++: fatal error: Killed signal terminated program cc1plus')",
        "import sys; sys.exit('c++: fatal error: Terminated signal terminated program cc1plus')",
        "import sys; sys.exit('clang: error: unable to execute command: Killed')",
        "import sys; sys.exit('collect2: fatal error: ld terminated with signal 9 [Killed]')",
        "import sys; sys.exit(\"nvcc error   : 'cicc' died due to signal 9 (Kill signal)\")",
        "import sys; sys.exit('bash: line 1:  4711 Killed                  cc1plus x.cpp')",
        "import sys; sys.exit('Terminated')",
        "import sys; sys.exit('cc1plus: out of memory allocating 65536 bytes')",
        "import sys; sys.exit('virtual memory exhausted: Cannot allocate memory')",
        "import sys; sys.exit(137)",
        "import sys; sys.exit(143)",
        "pass",
    ],
)
def test_failures_of_the_machine_are_not_remembered(executor: LocalExecutor, lines: list[str], code: str) -> None:
    for _ in range(2):
        with pytest.raises(ActionError):
            executor.run([], [failing(code)])
    assert len(lines) == 2


@pytest.mark.parametrize(
    "text",
    [
        "x.cpp:3: error: unterminated argument list",
        "x.cpp:3: error: use of undeclared identifier 'Killed'",
        "clang: error: unable to execute command: Segmentation fault",
        "g++: internal compiler error: Segmentation fault signal terminated program cc1plus",
    ],
)
def test_failures_of_the_input_are_remembered(executor: LocalExecutor, lines: list[str], text: str) -> None:
    for _ in range(2):
        with pytest.raises(ActionError):
            executor.run([], [failing(f"import sys; sys.exit({text!r})")])
    assert len(lines) == 1


def test_all_that_can_be_made_is_made(executor: LocalExecutor) -> None:
    bad, other = failing(), failing("import sys; sys.exit('error: another')", outputs=("out2",))
    actions = [bad, copy_action(["out"], "behind"), other, copy_action(["a/in.txt"], "good")]
    with pytest.raises(
        BuildError, match=r"(?s)2 commands failed.*no such tile.*another|another.*no such tile"
    ) as caught:
        executor.run([TEXT], actions, keep_going=True)
    assert {error.action for error in caught.value.errors} == {bad, other}
    assert set(executor.missing([TEXT], actions)) == {bad, other, actions[1]}


def test_what_is_missing_is_known_without_running_it(executor: LocalExecutor, lines: list[str]) -> None:
    actions = [copy_action(["one"], "two"), copy_action(["a/in.txt"], "one")]
    assert executor.missing([TEXT], actions) == actions and not lines
    executor.run([TEXT], actions[1:])
    assert executor.missing([TEXT], actions) == actions[:1]
    executor.run([TEXT], actions)
    assert not executor.missing([TEXT], actions)


def test_what_most_depends_on_starts_first(executor: LocalExecutor, lines: list[str]) -> None:
    def action(name: str, seconds: float, *inputs: str) -> Action:
        plain = copy_action(inputs or ("a/in.txt",), name)
        return Action(**{**vars(plain), "seconds": seconds})

    executor.jobs = 1
    tail = action("tail", 50, "head")
    actions = [action("short", 1), action("head", 2), action("long", 30), tail]
    executor.run([TEXT], actions)
    assert lines == ["Copy to head", "Copy to tail", "Copy to long", "Copy to short"]
    lines.clear()
    executor.run([RenderedFile("a/in.txt", "what they took counts now")], [action("new", 5), actions[2]])
    assert lines == ["Copy to new", "Copy to long"]


def test_costs_are_recorded_beside_results(executor: LocalExecutor) -> None:
    burn = python("x = sum(range(3_000_000)); open('out', 'w')")
    executor.run([], [burn])
    cost = executor.costs["py"]
    assert cost.cpu_s > 0 and cost.elapsed_s > 0 and cost.peak_mb > 1
    again = LocalExecutor({}, executor.cache)
    again.run([], [burn])
    assert again.costs == executor.costs


class _Log(Watcher):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def planned(self, actions: Sequence[Action], seconds: Mapping[Action, float]) -> None:
        self.heard.append(f"planned {len(actions)} {sum(seconds.values()):.1f}")

    def started(self, action: Action) -> None:
        self.heard.append(f"started {action.outputs[0]}")

    def ended(self, action: Action, cached: bool) -> None:
        self.heard.append(f"ended {action.outputs[0]} {cached}")

    def failed(self, error: ActionError) -> None:
        self.heard.append(f"failed {error.action.outputs[0]}")


def test_a_watcher_hears_of_every_action(executor: LocalExecutor) -> None:
    executor.jobs = 1
    executor.run([TEXT], [copy_action(["a/in.txt"], "one")])
    executor.watcher = log = _Log()
    actions = [copy_action(["a/in.txt"], "one"), copy_action(["one"], "two"), failing()]
    with pytest.raises(BuildError):
        executor.run([TEXT], actions, keep_going=True)
    assert log.heard[0].startswith("planned 3 ")
    assert sorted(log.heard[1:]) == ["ended one True", "ended two False", "failed out", "started out", "started two"]


def test_others_are_waited_for_and_not_for_ever(executor: LocalExecutor, lines: list[str]) -> None:
    slow = python("open('out', 'w').write('slow')")
    executor.run([], [slow])
    entry = next((executor.cache / "actions").iterdir())
    lock = executor.cache / "locks" / entry.name
    (entry / "out").write_text("damaged")
    executor.lock_timeout_s = 0.3
    with entry_lock(lock, 0) as ours:
        assert ours
        paths = executor.run([], [slow])
    assert paths["out"].read_text() == "slow" and len(lines) == 2
