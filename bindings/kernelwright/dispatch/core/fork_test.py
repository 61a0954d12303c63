"""Processes that fork while other threads plan: a child must neither hang nor lose its dispatcher."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from kernelwright.dispatch.core import native
from kernelwright.dispatch.loading import pinned
from kernelwright.dispatch.testdata import fork_under_load, mocks

CHILDREN = 200


@pytest.mark.thorough(instead="test_children_of_a_process_whose_thread_loads")
def test_children_of_a_process_whose_threads_plan(tmp_path: Path) -> None:
    mocks.native_library()
    library = mocks.write_library(tmp_path / "x86_64_v3")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    run = subprocess.run(
        [sys.executable, str(Path(fork_under_load.__file__)), str(library), str(CHILDREN)],
        env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert run.returncode == 0 and run.stdout.strip() == "[]", run.stdout + run.stderr


@pytest.mark.parametrize("module", [native, pinned])
def test_children_of_a_process_whose_thread_loads(module: ModuleType) -> None:
    held, done = threading.Event(), threading.Event()

    def load() -> None:
        with module._lock:
            held.set()
            done.wait(60)

    thread = threading.Thread(target=load)
    thread.start()
    held.wait(60)
    child = os.fork()
    if child == 0:
        os._exit(0 if module._lock.acquire(timeout=2) else 1)
    done.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
