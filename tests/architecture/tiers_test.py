"""Every family of the thorough tier has a part in the default one, and every thorough case is run by a target."""

from __future__ import annotations

import pytest

from architecture.tiers import ROOT, RUN_BY_HAND, files_by_tier, marked_files, read

MARKED = sorted(marked_files())


def test_there_are_marks_and_targets() -> None:
    tiers = files_by_tier()
    assert len(MARKED) > 20 and len(tiers["default"]) > 300 and len(tiers["thorough"]) > 30


@pytest.mark.parametrize("path", MARKED)
def test_a_marked_file_is_in_a_target_of_each_tier_that_has_cases_of_it(path: str) -> None:
    file, tiers = marked_files()[path], files_by_tier()
    folder = path.rpartition("/")[0]
    assert path in tiers["thorough"], f"{folder}/BUILD or one above: add it to `thorough` of tiered_tests"
    if file.has_default_part:
        assert path in tiers["default"], f"no python_tests or tiered_tests has the default part of {path}"
    else:
        assert path not in tiers["default"], f"nothing of {path} would run there: list it in thorough_tests alone"


@pytest.mark.parametrize("path", sorted(files_by_tier()["thorough"]))
def test_a_file_of_a_thorough_target_has_a_default_part(path: str) -> None:
    """Beside it, or where its marks say; targets that differ in an architecture have the same file in both tiers."""
    assert path in marked_files() or path in files_by_tier()["default"]


@pytest.mark.parametrize("path", MARKED)
def test_what_stands_for_a_family_by_default_is_there(path: str) -> None:
    file = marked_files()[path]
    for family in file.families:
        assert (family.keep is None) != (family.instead is None), family
        if family.instead is None:
            continue
        other, _, name = family.instead.rpartition("::")
        if name.endswith(".py"):
            other, name = name, ""
        if other and not name:
            assert other in files_by_tier()["default"], f"{path}: {family.instead} is in no target of the default tier"
            assert other not in marked_files() or marked_files()[other].has_default_part, family
        else:
            own = (ROOT / (other or path)).read_text()
            marks = {one.name: one for one in read(own).families}
            assert f"def {name}(" in own, f"{path}: there is no {family.instead}"
            assert name not in marks or marks[name].keep, f"{path}: {family.instead} is thorough itself"


@pytest.mark.parametrize("path", MARKED)
def test_a_conftest_above_gives_the_mark_its_effect(path: str) -> None:
    assert not path.startswith(RUN_BY_HAND), f"Pants does not run {path}; leave the mark out"
    assert "from tiers import" in (ROOT / path.partition("/")[0] / "conftest.py").read_text()
