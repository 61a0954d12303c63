"""Processes that fork while other threads plan: a child must neither hang nor lose its dispatcher."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from kernelwright.dispatch.testdata import fork_under_load, mocks

CHILDREN = 200


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
