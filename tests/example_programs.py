"""Runs examples as programs, for the tests that stand beside them."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import pytest


def run(script: Path, *arguments: str) -> int:
    """Run a script as if it were called with ``arguments``: its exit status."""
    old, old_path = sys.argv, sys.path
    sys.path = [str(script.parent), *sys.path]  # as the interpreter does for a program
    sys.argv = [script.stem, *arguments]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv, sys.path = old, old_path
    return 0


def modules(folder: Path) -> set[str]:
    """The names of a folder's modules that are no tests."""
    return {path.stem for path in folder.glob("*.py") if not path.name.endswith("_test.py")}


def prepare(name: str, monkeypatch: pytest.MonkeyPatch, cache: Path) -> None:
    """Skip where the example's requirements are not there; an example of JIT gets a cache of its own."""
    if name.startswith("torch_"):
        pytest.importorskip("torch", reason="torch is not installed: tests/pytorch/run runs this example")
    if name == "jit":
        if "KERNELWRIGHT_TREES" not in os.environ:
            pytest.skip("no compilers: KERNELWRIGHT_TREES is not set")
        monkeypatch.setenv("KERNELWRIGHT_CACHE", str(cache))
