from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Sequence

import pytest

from kernelwright.pants.compat import concurrently, implicitly, rule
from kernelwright.pants.util_rules import actions
from kernelwright.pants.util_rules.actions import Action, ActionsRequest
from kernelwright.pants.util_rules.actions_test import one_file_tree, shell_as_module
from kernelwright.pants.util_rules.slots import waiting
from pants.engine.rules import QueryRule
from pants.testutil.rule_runner import RuleRunner

# Says when it starts and ends, so that the log shows who ran beside whom, and waits until enough others have started.
MEETING = """
PATH=/usr/bin:/bin
echo "start $0" >>"$1"
for _ in $(seq 300); do
  [ "$(grep -c start "$1")" -lt "$2" ] || break
  sleep 0.1
done
sleep 0.2
echo "end $0" >>"$1"
: >"$0"
"""


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "__memory").mkdir()
    (tmp_path / "__memory/budget_mb").write_text("4000\n")
    return tmp_path


def start(machine: Path, memory_mb: int, *argv: str) -> subprocess.Popen[bytes]:
    slot = waiting(argv, memory_mb)
    return subprocess.Popen(slot.argv, cwd=machine, env={slot.variable: "1"}, start_new_session=True)


def meeting(output: str, log: Path, others: int) -> tuple[str, ...]:
    """A command that writes ``output`` when ``others`` commands, itself among them, have started."""
    return ("/bin/sh", "-c", MEETING, output, str(log), str(others))


def most_at_once(log: Path) -> int:
    running = most = 0
    for line in log.read_text().splitlines():
        running += 1 if line.startswith("start") else -1
        most = max(most, running)
    return most


@pytest.mark.parametrize(("sizes", "most"), [((3000, 3000, 3000), 1), ((1500, 1500), 2), ((9000, 9000), 1)])
def test_commands_run_at_once_as_far_as_memory_goes(machine: Path, sizes: Sequence[int], most: int) -> None:
    log = machine / "log"
    running = [start(machine, size, *meeting(str(n), log, most)) for n, size in enumerate(sizes)]
    assert [process.wait(timeout=30) for process in running] == [0] * len(sizes)
    assert most_at_once(log) == most


def test_a_killed_command_gives_its_memory_back(machine: Path) -> None:
    held = start(machine, 3000, "/bin/sleep", "60")
    while not list((machine / "__memory").glob("*.3000")):
        time.sleep(0.01)
    waiting_for_it = start(machine, 3000, "/bin/true")
    with pytest.raises(subprocess.TimeoutExpired):
        waiting_for_it.wait(timeout=0.5)
    os.killpg(held.pid, signal.SIGKILL)
    held.wait()
    assert waiting_for_it.wait(timeout=10) == 0


def test_an_orphan_keeps_its_memory(machine: Path) -> None:
    parent = start(machine, 3000, "/bin/sh", "-c", "sleep 1.5 & echo $! >orphan; exit 0")
    assert parent.wait() == 0
    next_one = start(machine, 3000, "/bin/true")
    with pytest.raises(subprocess.TimeoutExpired):
        next_one.wait(timeout=0.5)
    assert next_one.wait(timeout=10) == 0


def test_a_remote_worker_does_not_wait(tmp_path: Path) -> None:
    slot = waiting(("/bin/sh", "-c", "env | grep -c KERNELWRIGHT; exit 7"), 9000)
    done = subprocess.run(slot.argv, cwd=tmp_path, env={}, capture_output=True, timeout=10)
    assert (done.returncode, done.stdout) == (7, b"0\n")


@dataclass(frozen=True)
class SideBySide:
    requests: tuple[ActionsRequest, ...]


@dataclass(frozen=True)
class Done:
    count: int


@rule(desc="Run plans side by side")
async def side_by_side(request: SideBySide) -> Done:
    return Done(len(await concurrently(actions.run_actions(one, **implicitly()) for one in request.requests)))


def builder(machine: Path) -> RuleRunner:
    return RuleRunner(
        rules=[*actions.rules(), one_file_tree, shell_as_module, side_by_side, QueryRule(Done, (SideBySide,))],
        bootstrap_args=[
            f"--named-caches-dir={machine / 'named'}",
            f"--local-store-dir={machine / 'store'}",
            "--process-execution-local-parallelism=4",
        ],
    )


def compile_of(name: str, log: Path, memory_mb: int, others: int) -> ActionsRequest:
    action = Action(name, name, meeting(name, log, others), (), (name,), (), (), (), memory_mb)
    return ActionsRequest((), (action,), (name,))


@pytest.mark.parametrize(("memory_mb", "most"), [(3000, 1), (1000, 4)])
def test_pants_never_runs_two_large_compiles_on_a_small_machine(machine: Path, memory_mb: int, most: int) -> None:
    slots, log = machine / "named/kernelwright_memory", machine / "log"
    slots.mkdir(parents=True)
    (slots / "budget_mb").write_text("4000")
    request = SideBySide(tuple(compile_of(f"c{n}", log, memory_mb, most) for n in range(4)))
    assert builder(machine).request(Done, [request]) == Done(4)
    assert log.read_text().count("start") == 4
    assert most_at_once(log) == most


def test_an_estimate_is_no_part_of_a_cache_key(machine: Path) -> None:
    log = machine / "log"
    for memory_mb in (100, 200):
        assert builder(machine).request(Done, [SideBySide((compile_of("c", log, memory_mb, 1),))]) == Done(1)
    assert log.read_text() == "start c\nend c\n"
