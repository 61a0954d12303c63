from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from kernelwright.pants.compat.versions import EXECUTED_ON, LOADED_ON, UnsupportedPants, check, named

PAGE = Path(__file__).resolve().parents[4] / "docs/compatibility.md"


@pytest.mark.parametrize("version", [*EXECUTED_ON, *LOADED_ON, "2.17.0", "2.27.0.dev1", "2.33.9", "2.31.1rc1"])
def test_tested_versions_load_in_silence(version: str, caplog: pytest.LogCaptureFixture) -> None:
    check(version)
    assert not caplog.records


@pytest.mark.parametrize("version", ["2.35.0.dev0", "2.40.1", "3.0.0"])
def test_a_newer_pants_loads_with_one_warning(version: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        check(version)
    (record,) = caplog.records
    assert f"not tested on Pants {version}" in record.message and "2.34.0.dev3" in record.message
    assert "report" in record.message


@pytest.mark.parametrize(("version", "why"), [("2.16.1", "lacks rules"), ("2.18.0", "neither"), ("2.26.2", "neither")])
def test_what_is_known_to_fail_is_refused_in_one_sentence(version: str, why: str) -> None:
    with pytest.raises(UnsupportedPants) as refused:
        check(version)
    said = str(refused.value)
    assert said.startswith(f"kernelwright-pants does not run on Pants {version}, ") and why in said
    assert "set [GLOBAL].pants_version to 2.17.1 or to 2.27 or newer" in said
    assert ". " not in said and "\n" not in said


def test_an_import_that_fails_names_the_version_of_pants_first() -> None:
    with (
        pytest.raises(
            UnsupportedPants, match=r"^kernelwright-pants does not load on Pants 2\.\d+.*: no such rule"
        ) as told,
        named(),
    ):
        raise ImportError("no such rule")
    assert isinstance(told.value.__cause__, ImportError)


def test_a_refusal_is_told_as_it_is() -> None:
    with pytest.raises(UnsupportedPants, match=r"^because$"), named():
        raise UnsupportedPants("because")


def test_the_page_has_the_same_versions() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| 2.")]
    found = [version for row in rows if "builds" in row for version in listed_versions(row)]
    assert tuple(found) == EXECUTED_ON
    assert tuple(version for row in rows if "builds" not in row for version in listed_versions(row)) == LOADED_ON


def listed_versions(row: str) -> list[str]:
    return re.findall(r"\b2\.\d+\.\d+(?:\.dev\d+)?", row.split("|")[1])
