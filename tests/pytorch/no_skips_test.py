from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


MISSING = "pytest.importorskip('no_such_package')"
SOURCES = {
    "test": (f"def test_it():\n    {MISSING}", "could not import 'no_such_package'"),
    "module": (f"{MISSING}\ndef test_it(): pass", "could not import 'no_such_package'"),
    "mark": ("@pytest.mark.skip(reason='why not')\ndef test_it(): pass", "why not"),
}


@pytest.mark.parametrize("source, reason", SOURCES.values(), ids=SOURCES)
def test_what_is_skipped_has_failed(tmp_path: Path, source: str, reason: str) -> None:
    (tmp_path / "some_test.py").write_text(f"import pytest\n{source}\n")
    command = [sys.executable, "-m", "pytest", "-p", "pytorch.no_skips", "-p", "no:cacheprovider", "some_test.py"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and "skipped, but must run here" in done.stdout and reason in done.stdout
