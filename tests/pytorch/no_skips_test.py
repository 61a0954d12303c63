from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "source, reason",
    [
        (
            "import pytest\ndef test_it():\n    pytest.importorskip('no_such_package')",
            "could not import 'no_such_package'",
        ),
        (
            "import pytest\npytest.importorskip('no_such_package')\ndef test_it(): pass",
            "could not import 'no_such_package'",
        ),
        ("import pytest\n@pytest.mark.skip(reason='why not')\ndef test_it(): pass", "why not"),
    ],
    ids=["test", "module", "mark"],
)
def test_what_is_skipped_has_failed(tmp_path: Path, source: str, reason: str) -> None:
    (tmp_path / "some_test.py").write_text(source)
    command = [sys.executable, "-m", "pytest", "-p", "pytorch.no_skips", "-p", "no:cacheprovider", "some_test.py"]
    environment = {**os.environ, "PYTHONPATH": str(TESTS)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and "skipped, but must run here" in done.stdout and reason in done.stdout
