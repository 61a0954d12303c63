"""The versions of Pants that pages, configurations and launchers name are those that the plugin knows."""

from __future__ import annotations

import re
import tomllib

from compatibility.workflow_test import versions
from e2e.launcher import PANTS_2_17, ROOT

PAGE = (ROOT / "docs/compatibility.md").read_text()
EXECUTED = versions("EXECUTED_ON")
OLDEST, NEWEST = EXECUTED[0], [version for version in EXECUTED if "dev" not in version][-1]
TEXTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md"), ROOT / "pants"])


def test_the_launcher_runs_the_oldest_version_that_builds_ran_on() -> None:
    (pinned,) = re.findall(r"^pantsbuild-pants==(\S+)", (ROOT / "3rdparty/python/pants.txt").read_text(), re.MULTILINE)
    assert pinned == OLDEST
    assert f"_{'_'.join(OLDEST.split('.')[:2])}" in PANTS_2_17.name
    for name in ("README.md", "CONTRIBUTING.md"):
        runs = re.findall(r"launcher(?: `\./pants`)? runs Pants (\d[\d.]*\d)", (ROOT / name).read_text())
        assert runs == [OLDEST], name


def test_pants_toml_names_the_newest_release_that_builds_ran_on() -> None:
    options = tomllib.loads((ROOT / "pants.toml").read_text())
    assert options["GLOBAL"]["pants_version"] == NEWEST
    assert f"`pants.toml` names Pants {NEWEST} " in (ROOT / "CHANGELOG.md").read_text()


def test_the_page_shows_how_to_use_and_to_check_that_release() -> None:
    assert re.findall(r'^ *pants_version = "(.*)"$', PAGE, re.MULTILINE) == [NEWEST]
    assert set(re.findall(r"PANTS_VERSION=([\d.]+\w*)", PAGE)) == {NEWEST}
    assert f"\n## Use on Pants {NEWEST.rpartition('.')[0]}\n" in PAGE


def test_no_page_ends_the_versions_that_the_plugin_runs_on() -> None:
    """A series newer than all that were tested is no refusal. The changelog keeps what was true once."""
    pages = {path: path.read_text() for path in TEXTS if path.name != "CHANGELOG.md"}
    assert len(pages) > 30
    assert [path for path, text in pages.items() if re.search(r"2\.17,? (?:or|and) 2\.27 to 2\.\d+", text)] == []


def test_contributing_says_which_checks_ran_on_which_version() -> None:
    text = " ".join((ROOT / "CONTRIBUTING.md").read_text().split())
    assert f"all checks of `.ci/run` on {OLDEST} alone" in text
    (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| {OLDEST} |")]
    assert row.endswith("| each `.ci/run` |")
    for suite in ("tests/e2e", "tests/downstream", "tests/remote", "tests/faults"):
        assert f"`{suite}`" in row
