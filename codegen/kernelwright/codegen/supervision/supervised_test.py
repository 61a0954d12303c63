"""Commands that fork, daemonise, flood, stop and close what they have: each ends in bounded time and leaves nothing."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelwright.codegen.supervision.output import Lines
from kernelwright.codegen.supervision.supervised import End, Supervised

DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    stay()
"""
PRELUDE = """
import os, signal, sys, threading, time
def stay():
    for number in set(signal.valid_signals()) - {signal.SIGKILL, signal.SIGSTOP}:
        signal.signal(number, signal.SIG_IGN)
    open(sys.argv[1] + "/" + str(os.getpid()), "w").close()
    while True:
        time.sleep(1)
def wait_for(count):
    while len(os.listdir(sys.argv[1])) < count:
        time.sleep(0.01)
"""


@pytest.fixture
def notes(tmp_path: Path) -> Iterator[Path]:
    """Where each process that means to stay leaves its number; none of them may."""
    folder = tmp_path / "notes"
    folder.mkdir()
    yield folder
    assert [note.name for note in folder.iterdir() if is_alive(int(note.name))] == []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def command(code: str, notes: Path) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", PRELUDE + code, str(notes)]


def ended(code: str, notes: Path, limit_s: float = 60) -> tuple[End | None, End, Supervised]:
    """How it ended within a limit of time, and how it ended at all."""
    with Supervised(command(code, notes)) as process:
        within = process.wait(limit_s)
        return within, process.close(), process


def test_exit_code_signal_and_output_are_those_of_the_command(notes: Path) -> None:
    said = "print('out', flush=True); print('err', file=sys.stderr, flush=True)\n"
    within, end, process = ended(said + "sys.exit(3)", notes)
    assert within == end and end.returncode == 3 and not end.left
    assert (str(process.out), str(process.err)) == ("out\n", "err\n")
    assert ended("os.kill(os.getpid(), signal.SIGSEGV)", notes)[1].returncode == -signal.SIGSEGV


def test_what_it_took_is_known(notes: Path) -> None:
    _, end, _ = ended(
        "a = b'x' * (64 << 20); start = time.process_time()\nwhile time.process_time() < start + 0.2: pass", notes
    )
    assert 0.2 <= end.cpu_s < 5 and 64 << 10 <= end.memory_kb < 128 << 10


@pytest.mark.parametrize(
    ("code", "returncode"),
    [
        ("if os.fork() == 0: stay()\nwait_for(1); os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        (DAEMON + "wait_for(1)", 0),
        (DAEMON + "wait_for(1); os.kill(os.getpid(), signal.SIGABRT)", -signal.SIGABRT),
        ("if os.fork() == 0: os.closerange(0, 256); stay()\nwait_for(1)", 0),
        ("if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\n", 0),
        ("for _ in range(40):\n    if os.fork() == 0: os.setsid(); stay()\nwait_for(40)", 0),
        ("if os.fork() == 0:\n    while not os.fork(): pass\n    os._exit(0)\ntime.sleep(0.1)", 0),
    ],
    ids=["fork", "daemon", "daemon and crash", "silent fork", "stopped fork", "many", "one after the other"],
)
def test_nothing_outlives_a_command(notes: Path, code: str, returncode: int) -> None:
    within, end, _ = ended(code, notes)
    assert within is not None and end.returncode == returncode and not end.left


@pytest.mark.parametrize(
    "code",
    [
        "stay()",
        "while True: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)",
        "os.closerange(0, 256); stay()",
        "os.kill(os.getpid(), signal.SIGSTOP)",
        "os.kill(os.getppid(), signal.SIGSTOP); stay()",
        "import ctypes; threading.Thread(target=time.sleep, args=(600,)).start(); ctypes.CDLL(None).syscall(60, 0)",
        "os.execl('/bin/sh', 'sh', '-c', 'trap \"\" TERM INT HUP; while :; do sleep 1; done')",
    ],
    ids=["ignores signals", "floods", "closes pipes", "stops", "stops its parent", "first thread ends", "execs"],
)
def test_a_limit_of_time_holds(notes: Path, code: str) -> None:
    start = time.monotonic()
    within, end, process = ended(code, notes, 1.0)
    assert within is None and end.returncode == -signal.SIGKILL and not end.left
    assert time.monotonic() - start < 20
    assert len(str(process.out)) < 3 << 20 and len(str(process.err)) < 3 << 20


def test_a_command_that_kills_its_supervisor_ends(notes: Path) -> None:
    within, end, _ = ended("os.kill(os.getppid(), signal.SIGKILL); stay()", notes)
    assert within is not None and end.returncode == -signal.SIGKILL and not end.left


def test_what_it_printed_keeps_its_beginning_and_its_end(notes: Path) -> None:
    _, _, process = ended("print('first'); sys.stdout.write('x' * (5 << 20)); print('last')", notes)
    text = str(process.out)
    assert text.startswith("first\nx") and text.endswith("xlast\n") and "bytes left out ...]" in text
    assert len(text) < (2 << 20) + 100


def test_lines_are_bounded_too(notes: Path) -> None:
    for code in ("while True: os.write(1, b'x' * 65536)", "while True: os.write(1, b'x\\n' * 1000)"):
        lines = Lines(1 << 20, 1000)
        with Supervised(command(code, notes), out=lines) as process:
            deadline = time.monotonic() + 30
            while not lines.overflow and time.monotonic() < deadline:
                process.step(1)
        assert lines.overflow


def test_another_thread_can_end_it(notes: Path) -> None:
    with Supervised(command("stay()", notes)) as process:
        timer = threading.Timer(0.3, process.end)
        timer.start()
        end = process.wait(30)
    assert end is not None and end.returncode == -signal.SIGKILL


def test_what_cannot_be_started_says_why(tmp_path: Path) -> None:
    descriptors = len(os.listdir("/proc/self/fd"))
    for argv, number in ((["/nowhere/cc"], 2), ([str(tmp_path)], 13), (["no_such_compiler"], 2)):
        with pytest.raises(OSError) as caught:
            Supervised(argv)
        assert caught.value.errno == number
    with pytest.raises(OSError):
        Supervised(["true"], cwd=tmp_path / "nowhere")
    assert len(os.listdir("/proc/self/fd")) == descriptors


PARENT = """
import os, sys
from pathlib import Path
from kernelwright.codegen.supervision.supervised import Supervised
from kernelwright.codegen.supervision.supervised_test import DAEMON, command
process = Supervised(command(DAEMON + "stay()", Path(sys.argv[1])))
if sys.argv[2] == "copy" and os.fork() == 0:  # it keeps our end of the socket open
    import time
    time.sleep(30)
    os._exit(0)
process.wait(600)
"""


@pytest.mark.parametrize("copy", ["alone", "copy"])
def test_it_ends_when_we_are_killed(notes: Path, copy: str) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    argv = [sys.executable, "-c", PARENT, str(notes), copy]
    with subprocess.Popen(argv, env={**os.environ, "PYTHONPATH": paths}, start_new_session=True) as program:
        while len(list(notes.iterdir())) < 2:
            assert program.poll() is None
            time.sleep(0.01)
        program.kill()
    deadline = time.monotonic() + 20
    while any(is_alive(int(note.name)) for note in notes.iterdir()) and time.monotonic() < deadline:
        time.sleep(0.05)
    if copy == "copy":
        os.killpg(program.pid, signal.SIGKILL)


SIGNALS = """
import signal, sys
from pathlib import Path
from kernelwright.codegen.supervision.supervised import Supervised
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
ask = "import signal; print(signal.pthread_sigmask(0, []), int(signal.getsignal(signal.SIGCHLD)), end='')"
with Supervised([sys.executable, "-I", "-S", "-c", ask]) as process:
    print(process.wait(60).returncode, process.out)
with Supervised(["/bin/sh", "-c", "false || (exit 3); exit $?"]) as process:
    print(process.wait(60).returncode)
"""


def test_signals_that_the_program_ignores_or_blocks_are_its_own(notes: Path) -> None:
    """A host that ignores SIGCHLD reaps nothing itself, and compilers below it could not wait for their parts."""
    paths = os.pathsep.join(path for path in sys.path if path)
    run = [sys.executable, "-c", SIGNALS]
    done = subprocess.run(run, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == ["0 set() 0", "3"], done.stderr


def test_it_runs_in_a_program_of_many_descriptors(notes: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(2048, hard), hard))
    taken = [os.open(os.devnull, os.O_RDONLY) for _ in range(1024)]
    try:
        _, end, _ = ended("sys.exit(7)", notes)
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert end.returncode == 7 and not end.left


def test_descriptors_are_inherited_by_request_only(notes: Path, tmp_path: Path) -> None:
    with open(tmp_path / "kept", "w") as kept, open(tmp_path / "other", "w") as other:
        os.set_inheritable(other.fileno(), True)
        code = "print([number for number in range(3, 64) if os.path.exists(f'/proc/self/fd/{number}')])"
        with Supervised(command(code, notes), kept=(kept.fileno(),)) as process:
            process.wait(60)
        assert str(kept.fileno()) in str(process.out) and str(other.fileno()) not in str(process.out)
