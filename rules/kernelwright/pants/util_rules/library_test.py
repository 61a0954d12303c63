from __future__ import annotations

from typing import Any

from kernelwright.pants.engine.progress import Part
from kernelwright.pants.util_rules.library import parse_library


def action(name: str, inputs: list[str], outputs: list[str]) -> dict[str, Any]:
    return {
        "id": name,
        "description": name,
        "argv": ["tool", *inputs],
        "inputs": inputs,
        "outputs": outputs,
        "trees": [],
        "env": [],
        "caches": [],
        "memory_mb": 1,
    }


LIBRARY: dict[str, Any] = {
    "arch": "gfx942",
    "library": "gfx942/libx.so",
    "groups": [],
    "reports": {"one": "gfx942/one.s"},
    "files": [
        {"path": "gfx942/one.hpp", "text": "1"},
        {"path": "gfx942/two.hpp", "text": "2"},
        {"path": "gfx942/x_table.c", "text": "t"},
    ],
    "actions": [
        action("one:device", ["gfx942/one.hpp"], ["gfx942/one.s"]),
        action("one:assemble", ["gfx942/one.s"], ["gfx942/one.o"]),
        action("one:count", ["gfx942/one.s"], ["gfx942/one.json"]),
        action("two:device", ["gfx942/two.hpp"], ["gfx942/two.o"]),
        action("table", ["gfx942/x_table.c"], ["gfx942/x_table.o"]),
        action("link", ["gfx942/x_table.o", "gfx942/one.o", "gfx942/two.o"], ["gfx942/libx.so"]),
    ],
    "kernels": [
        {"name": "one", "objects": ["gfx942/one.o"], "report": "gfx942/one.s", "counts": "gfx942/one.json"},
        {"name": "two", "objects": ["gfx942/two.o"], "report": None, "counts": None},
    ],
}


def test_each_kernel_gets_its_own_actions_and_files() -> None:
    planned = parse_library(LIBRARY)
    (group,) = planned.groups
    assert group.link is None
    one, two = group.kernels
    assert [step.id for step in one.actions] == ["one:device", "one:assemble", "one:count"]
    assert one.files == (("gfx942/one.hpp", "1"),)
    assert one.keep == ("gfx942/one.o", "gfx942/one.s", "gfx942/one.json")
    assert [step.id for step in two.actions] == ["two:device"]
    assert two.keep == ("gfx942/two.o",)


def test_progress_is_told_of_kernels_by_name() -> None:
    planned = parse_library(LIBRARY)
    (group,) = planned.groups
    assert planned.title == group.library == "libx.so for gfx942"
    assert [kernel.part for kernel in group.kernels] == [Part(planned.title, "one"), Part(planned.title, "two")]
    assert planned.link.part == Part(planned.title)


def test_what_no_kernel_needs_belongs_to_the_link() -> None:
    planned = parse_library(LIBRARY)
    assert [step.id for step in planned.link.actions] == ["table", "link"]
    assert planned.link.files == (("gfx942/x_table.c", "t"),)
    assert planned.link.keep == ("gfx942/libx.so",)
    assert planned.reports == ("gfx942/one.json", "gfx942/one.s")


def test_a_kernel_that_did_not_change_keeps_its_request() -> None:
    changed = {**LIBRARY, "files": [{**file, "text": file["text"].replace("2", "3")} for file in LIBRARY["files"]]}
    before, after = parse_library(LIBRARY), parse_library(changed)
    assert before.groups[0].kernels[0] == after.groups[0].kernels[0]
    assert before.groups[0].kernels[1] != after.groups[0].kernels[1]
    assert before.link == after.link


def test_a_large_library_links_its_groups_first() -> None:
    group = action("group", ["gfx942/one.o"], ["gfx942/group.o"])
    link = action("link", ["gfx942/x_table.o", "gfx942/group.o"], ["gfx942/libx.so"])
    grouped = {
        **LIBRARY,
        "actions": [*LIBRARY["actions"][:-1], group, link],
        "kernels": LIBRARY["kernels"][:1],
        "groups": [{"output": "gfx942/group.o", "kernels": ["one"]}],
    }
    planned = parse_library(grouped)
    (first,) = planned.groups
    assert first.link is not None
    assert [step.id for step in first.link.actions] == ["group"]
    assert first.link.keep == ("gfx942/group.o",)
    assert [kernel.keep for kernel in first.kernels] == [("gfx942/one.o", "gfx942/one.s", "gfx942/one.json")]
    assert [step.id for step in planned.link.actions] == ["two:device", "table", "link"]
