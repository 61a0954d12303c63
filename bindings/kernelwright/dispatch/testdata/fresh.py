"""Programs of this folder in interpreters of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType


def output(program: ModuleType, *arguments: str) -> str:
    """What the program prints; AssertionError with all of it unless it exits with 0 within two minutes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST"))}
    run = subprocess.run(
        [sys.executable, str(program.__file__), *arguments],
        env={**kept, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    sys.stderr.write(run.stderr)  # which pytest shows of a test that fails
    return run.stdout.strip()
