"""The public workflow runs every version that the plugin names, and nothing that is not here."""

from __future__ import annotations

import ast
import json
import re

from e2e.launcher import ROOT

WORKFLOW = (ROOT / ".github/workflows/pants.yml").read_text()


def versions(name: str) -> tuple[str, ...]:
    """A tuple of ``compat/versions.py``, which can be imported under Pants alone."""
    source = (ROOT / "rules/kernelwright/pants/compat/versions.py").read_text()
    (value,) = (
        ast.literal_eval(statement.value)
        for statement in ast.parse(source).body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == name
    )
    assert isinstance(value, tuple)
    return value


def test_every_released_version_is_in_the_matrix() -> None:
    (listed,) = re.findall(r"^ +pants: (\[.*\])$", WORKFLOW, re.MULTILINE)
    known = {*versions("EXECUTED_ON"), *versions("LOADED_ON")}
    assert set(json.loads(listed)) == {version for version in known if "dev" not in version}


def test_what_it_runs_is_in_the_repository() -> None:
    paths = re.findall(r"(?<![\w/.])(?:tests|\.ci)/[\w./]+", WORKFLOW)
    assert len(set(paths)) >= 6
    assert [path for path in paths if not (ROOT / path).exists()] == []
