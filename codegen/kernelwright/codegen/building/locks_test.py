from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from kernelwright.codegen.building.locks import entry_lock
from kernelwright.codegen.building.sandbox import sandbox_in

_HOLDER = """
import sys, time
from pathlib import Path
from kernelwright.codegen.building.locks import entry_lock
with entry_lock(Path(sys.argv[1]), 5) as ours:
    print(ours, flush=True)
    time.sleep(600)
"""


def test_one_at_a_time_and_nothing_stays(tmp_path: Path) -> None:
    path = tmp_path / "locks/entry"
    inside, most = 0, 0
    guard = threading.Lock()

    def hold() -> None:
        nonlocal inside, most
        for _ in range(20):
            with entry_lock(path, 60) as ours:
                assert ours
                with guard:
                    inside += 1
                    most = max(most, inside)
                time.sleep(0.001)
                with guard:
                    inside -= 1

    threads = [threading.Thread(target=hold) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert most == 1 and not list(path.parent.iterdir())


def test_a_killed_holder_frees_its_lock_and_a_living_one_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "entry"
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout and holder.stdout.readline() == "True\n"
    with entry_lock(path, 0.2) as ours:
        assert not ours
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    with entry_lock(path, 0) as ours:
        assert ours


def test_sandboxes_of_the_dead_are_removed(tmp_path: Path) -> None:
    import os

    with sandbox_in(tmp_path) as (living, _):
        dead = tmp_path / "dead"
        (dead / "deep").mkdir(parents=True)
        old = time.time() - 3600
        for folder in (dead, living):
            os.utime(folder, (old, old))
        with sandbox_in(tmp_path) as (other, _):
            assert sorted(tmp_path.iterdir()) == sorted((living, other))
    assert not list(tmp_path.iterdir())
