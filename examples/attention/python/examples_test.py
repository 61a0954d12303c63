"""Each example runs, on small problems, and says what it should."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KERNELS = os.environ.get("KERNELWRIGHT_FMHA_KERNELS", str(HERE.parent / "kernels"))
# Example → what its output must have.
EXAMPLES = {
    "basic": "heads before rows: as NumPy",
    "features": "dropout keeps the mean",
    "gradients": "dbias along a random direction",
    "paged_cache": "as one causal attention over each sequence",
    "ragged": "request 2: 40 of 40 keys count",
    "torch_training": "as torch alone",
}


def run(name: str, *arguments: str) -> int:
    """As a program: its exit status."""
    old, old_path = sys.argv, sys.path
    sys.path = [str(HERE), *sys.path]  # as the interpreter does for a program
    sys.argv = [name, "--library", KERNELS, *arguments]
    try:
        runpy.run_path(str(HERE / f"{name}.py"), run_name="__main__")
    except SystemExit as end:
        return int(end.code or 0)
    finally:
        sys.argv, sys.path = old, old_path
    return 0


def test_every_example_is_run() -> None:
    modules = {path.stem for path in HERE.glob("*.py") if not path.name.endswith("_test.py")}
    assert set(EXAMPLES) == modules - {"common"}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    if name.startswith("torch_"):
        pytest.importorskip("torch", reason="torch is not installed: tests/pytorch/run runs this example")
    assert run(name) == 0
    assert EXAMPLES[name] in capsys.readouterr().out
