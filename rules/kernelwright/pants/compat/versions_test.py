from __future__ import annotations

import datetime
import logging
from pathlib import Path
from typing import List

import pytest

from kernelwright.pants.compat.versions import EXECUTED_ON, LOADED_ON, REFUSED, UnsupportedPants, check, named

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
    executed = {version: not cells[2].startswith("nothing") for cells in rows() for version in cells[0].split(", ")}
    assert tuple(version for version, built in executed.items() if built) == EXECUTED_ON
    assert tuple(version for version, built in executed.items() if not built) == LOADED_ON


def test_the_page_says_what_was_executed_and_what_was_not_on_which_day() -> None:
    for version, _, executed, left_out, how in rows():
        assert executed and left_out, version
        known = how in ("the same", "each `.ci/run`")
        assert known or datetime.date.fromisoformat(how.partition(",")[0]), version


def test_the_page_refuses_and_warns_as_the_plugin_does() -> None:
    text = " ".join(PAGE.read_text().split())
    assert f"On {REFUSED[0]} to {REFUSED[1]} it does not load" in text
    assert "On a series newer than all in this table the backend loads with one warning" in text
    for series in REFUSED:
        with pytest.raises(UnsupportedPants) as refused:
            check(f"{series}.0")
        why = str(refused.value).partition("whose ")[2].partition(";")[0]
        assert why and f"their {why}" in text


def rows() -> List[List[str]]:
    """The cells of the page's table of versions."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| 2.")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
