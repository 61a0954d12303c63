"""Locks that hold a part of another one: of `./pants run examples:…`, and what the plugin installs elsewhere."""

from __future__ import annotations

import pytest

from architecture.sources import ROOT

LOCKS = ROOT / "3rdparty/python"


def pins(name: str) -> set[str]:
    """Each requirement with its hashes."""
    text = (LOCKS / name).read_text().replace(" \\\n    ", " ")
    return {line for line in text.splitlines() if "==" in line}


@pytest.mark.parametrize("part", ["run.txt", "bench.txt", "codegen.txt"])
def test_a_part_has_the_pins_of_the_whole(part: str) -> None:
    assert pins(part) and pins(part) < pins("runtime.txt")


def test_a_lock_has_what_its_input_asks_for() -> None:
    asked = {line.partition("==")[0].replace("_", "-") for line in (LOCKS / "run.in").read_text().splitlines()}
    names = {pin.partition("==")[0] for pin in pins("run.txt")}
    assert names == {name for name in asked if name and name[0] not in "#-"}
