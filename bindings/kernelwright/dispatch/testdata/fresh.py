"""Run programs of this folder in fresh interpreters."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType


def output(program: ModuleType, *arguments: str) -> str:
    """Return the program's output. AssertionError with all of it unless it exits with 0 within two minutes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    run = subprocess.run(
        [sys.executable, str(program.__file__), *arguments],
        env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    sys.stderr.write(run.stderr)  # pytest shows it for a failing test
    return run.stdout.strip()
