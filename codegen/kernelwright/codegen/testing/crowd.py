"""For tests: many processes that do the same thing at once, some of which are killed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


def crowd(
    command: Sequence[str], logs: Path, *, processes: int, kills: int, pause_s: float, seed: int, timeout_s: float
) -> int:
    """Run ``processes`` copies of a command at once, and another for each that is killed; returns how many were killed.

    Every 0 to ``2 * pause_s`` seconds one running copy is killed (SIGKILL, every other time with everything that it
    started), until ``kills`` were or all are done; preferably one that has printed something, and so is at work.
    AssertionError, with its output, if one that was left alone fails or does not end within ``timeout_s`` seconds after
    the last kill.
    """
    logs.mkdir(parents=True)
    rng = random.Random(seed)
    running: list[tuple[subprocess.Popen[bytes], Path]] = []

    def start() -> None:
        log = logs / str(len(list(logs.iterdir())))
        with open(log, "wb") as stream:
            running.append((subprocess.Popen(command, stdout=stream, stderr=stream, start_new_session=True), log))

    for _ in range(processes):
        start()
    killed = 0
    try:
        while killed < kills:
            time.sleep(rng.uniform(0, 2 * pause_s))
            alive = [one for one in running if one[0].poll() is None]
            if not alive:
                break
            busy = [one for one in alive if one[1].stat().st_size]
            victim = rng.choice(busy if busy and rng.random() < 0.8 else alive)
            if rng.random() < 0.5:
                _kill_session(victim[0].pid)
            else:
                victim[0].kill()  # its children go on
            if victim[0].wait() != -signal.SIGKILL:
                continue  # it had ended by itself, which is checked below
            running.remove(victim)
            killed += 1
            start()
        deadline = time.monotonic() + timeout_s
        for process, log in running:
            code = process.wait(timeout=max(0.1, deadline - time.monotonic()))
            assert code == 0, f"exit code {code}:\n{log.read_text(errors='replace')}"
    except subprocess.TimeoutExpired as error:
        raise AssertionError(f"a process hangs: {error}") from None
    finally:
        for process, _ in running:
            if process.poll() is None:
                _kill_session(process.pid)
                process.wait()
    return killed


def _kill_session(leader: int) -> None:
    """Kill a process and everything that it started, whatever process groups they are in."""
    while members := [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _runs_in(leader, pid)]:
        for pid in sorted(members, key=lambda pid: pid != leader):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.001)


def _runs_in(session: int, pid: int) -> bool:
    try:
        state, _, _, session_id = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
    except OSError:  # it has ended
        return False
    return int(session_id) == session and state not in "ZX"
