from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.execute import ActionError, LocalExecutor, Watcher
from kernelwright.codegen.building.failures import TimeLimitError
from kernelwright.codegen.building.run_command import TIMEOUT_S, RunningCommands, run_command

# Starts a child, says its number, and waits for it; a compiler's driver does such things.
HANG = 'sleep 600 & echo $! >"$1.new"; mv "$1.new" "$1"; echo so far; wait'


def hanging(note: Path) -> Action:
    shell = ("/bin/sh", "-c", HANG, "sh", str(note))
    return Action("sh", "Compile gemm_slow", shell, (), ("out",), env=(("PATH", "/usr/bin:/bin"),))


def has_ended(pid: int) -> bool:
    """Soon: whoever inherits a killed process has to reap it."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


@pytest.fixture
def executor(tmp_path: Path) -> LocalExecutor:
    return LocalExecutor({}, tmp_path / "cache", timeout_s=1.5)


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(
    executor: LocalExecutor, tmp_path: Path
) -> None:
    with pytest.raises(ActionError) as caught:
        executor.run([], [hanging(tmp_path / "pid")])
    assert isinstance(caught.value, TimeLimitError)
    said = str(caught.value)
    assert said.startswith("Compile gemm_slow: took more than its limit of 1.5 seconds (timeout_s, --timeout)")
    assert "/bin/sh -c sleep 600" in said and said.endswith("so far")
    assert has_ended(int((tmp_path / "pid").read_text()))
    assert not list((executor.cache / "sandboxes").iterdir()), "its folder goes, and its memory is free"
    assert not list((executor.cache / "memory").glob("*.*"))


def test_it_is_tried_again_with_more_time_on_request_and_later(executor: LocalExecutor, tmp_path: Path) -> None:
    started: list[str] = []
    executor.progress = started.append
    action = hanging(tmp_path / "pid")
    for _ in range(2):
        with pytest.raises(TimeLimitError) as caught:
            executor.run([], [action])
    assert len(started) == 1 and caught.value.record and str(caught.value.record) in str(caught.value)

    executor.timeout_s = 2
    with pytest.raises(TimeLimitError, match="2 seconds"):
        executor.run([], [action])
    executor.timeout_s, executor.retry_failed = 0.1, True
    with pytest.raises(TimeLimitError, match=r"0\.1 seconds"):
        executor.run([], [action])
    assert len(started) == 3

    executor.retry_failed = False
    (record,) = (executor.cache / "failures").iterdir()
    record.write_text(json.dumps({**json.loads(record.read_text()), "until": time.time() - 1}))
    with pytest.raises(TimeLimitError):
        executor.run([], [action])
    assert len(started) == 4


def test_an_interrupted_run_ends_its_commands(executor: LocalExecutor, tmp_path: Path) -> None:
    class Interrupted(Watcher):
        def failed(self, error: ActionError) -> None:
            raise KeyboardInterrupt

    note = tmp_path / "pid"
    code = f"import os, time\nwhile not os.path.exists({str(note)!r}): time.sleep(0.01)\nraise SystemExit(1)"
    failing = Action("f", "Fail", (sys.executable, "-c", code), (), ("none",))
    executor.watcher, executor.jobs, executor.timeout_s = Interrupted(), 2, TIMEOUT_S
    with pytest.raises(KeyboardInterrupt):
        executor.run([], [hanging(note), failing])
    assert has_ended(int(note.read_text()))
    assert not any("so far" in record.read_text() for record in (executor.cache / "failures").iterdir())
    executor.run([], [Action("o", "Write", (sys.executable, "-c", "open('out', 'w')"), (), ("out",))])


PROGRAM = """
import sys
from pathlib import Path
from kernelwright.codegen.building.run_command import interrupt_on_signals
from kernelwright.codegen.building.run_command_test import hanging
from kernelwright.codegen.building.execute import LocalExecutor

interrupt_on_signals()
LocalExecutor({}, Path(sys.argv[1], "cache")).run([], [hanging(Path(sys.argv[1], "pid"))])
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_whoever_ends_the_command_line_ends_its_compilers(tmp_path: Path, number: signal.Signals) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    with subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths}, stderr=subprocess.DEVNULL) as program:
        while not (tmp_path / "pid").exists():
            assert program.poll() is None
            time.sleep(0.01)
        program.send_signal(number)
        assert program.wait() != 0
    assert has_ended(int((tmp_path / "pid").read_text()))


def test_a_command_that_starts_after_the_end_is_ended_too(tmp_path: Path) -> None:
    running = RunningCommands()
    running.close()
    assert run_command(hanging(tmp_path / "pid"), tmp_path, (), 3600, running)[0] == -signal.SIGKILL


def test_one_that_ends_by_itself_leaves_no_timer(tmp_path: Path) -> None:
    before = threading.active_count()
    quick = Action("q", "Exit", (sys.executable, "-c", "raise SystemExit(3)"), (), ())
    assert run_command(quick, tmp_path, (), 3600, RunningCommands())[0] == 3
    for _ in range(100):
        if threading.active_count() <= before:
            return
        time.sleep(0.01)
    raise AssertionError("a timer is left")


def test_the_group_is_not_ours(tmp_path: Path) -> None:
    ask = Action("g", "Ask", (sys.executable, "-c", "import os; print(os.getpgrp())"), (), ())
    assert int(run_command(ask, tmp_path, (), 60, RunningCommands())[1]) != os.getpgrp()


HOST = """
import signal, sys
from pathlib import Path
from kernelwright.codegen.actions import Action
from kernelwright.codegen.building.execute import ActionError, LocalExecutor

calls = []
how = sys.argv[2]
if how == "ignores":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
else:
    signal.signal(signal.SIGCHLD, lambda number, frame: calls.append(number))
    signal.signal(signal.SIGALRM, lambda number, frame: calls.append(number))
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
executor = LocalExecutor({}, Path(sys.argv[1]), jobs=3)
copy = "sleep 0.1; (exit 3); test $? = 3 && echo $1 >$2"
commands = [("/bin/sh", "-c", copy, "sh", str(n), f"out{n}") for n in range(6)]
actions = [Action(str(n), f"Copy {n}", commands[n], (), (f"out{n}",)) for n in range(6)]
made = executor.run([], actions)
assert [made[f"out{n}"].read_text() for n in range(6)] == [f"{n}\\n" for n in range(6)]
try:
    executor.run([], [Action("f", "Fail", ("/bin/sh", "-c", "exit 5"), (), ("none",))])
except ActionError as error:
    print(error.reason, bool(calls))
"""


@pytest.mark.parametrize(("how", "called"), [("ignores", False), ("counts", True)])
def test_a_host_with_signals_of_its_own_builds(tmp_path: Path, how: str, called: bool) -> None:
    """One that ignores SIGCHLD, so that no child of it can be waited for; one that a timer interrupts all the time."""
    paths = os.pathsep.join(path for path in sys.path if path)
    command = [sys.executable, "-c", HOST, str(tmp_path), how]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=120)
    assert done.stdout == f"failed with exit code 5 {called}\n", done.stderr
