from __future__ import annotations

import re
import xml.etree.ElementTree as xml

import pytest

from readme import generated, wheels


def test_the_table_and_the_picture_are_what_the_script_writes() -> None:
    text = generated.README.read_text()
    assert generated.page(text) == text
    assert generated.ROAD.read_text() == generated.road()
    xml.fromstring(generated.road())


def test_the_tables_of_wheels_are_what_their_script_writes() -> None:
    text = wheels.PAGE.read_text()
    assert wheels.page(text) == text
    cells = {tuple(line.split(" | ")[:2]) for line in wheels.tables() if line.startswith("| ")}
    assert {("| gfx942", "bf16"), ("| sm_90a", "fp16"), ("| x86_64_v3", "int8")} <= cells
    assert all(wheels.shipped("gemm", arch) for arch in ("gfx1100", "x86_64_v4"))


def test_the_page_is_short_and_its_links_lead_somewhere() -> None:
    text = generated.README.read_text()
    assert len(text.splitlines()) <= 80
    linked = re.findall(r"\]\((docs/[^)#:]+)", text)
    assert len(linked) > 20
    assert [target for target in linked if not (generated.ROOT / target).exists()] == []


@pytest.mark.parametrize("page", ["remote_execution.md", "ci.md"])
def test_recipes_set_the_variables_that_they_use(page: str) -> None:
    blocks = re.findall(r"^```\n(.*?)^```$", (generated.ROOT / "docs" / page).read_text(), re.M | re.S)
    commands = "\n".join(re.sub(r"'[^']*'", "''", block) for block in blocks)
    used = set(re.findall(r"\$\{?([A-Za-z_]\w*)", commands))
    known = set(re.findall(r"\b([A-Za-z_]\w*)=", commands)) | {"HOME", "PATH", "PWD"}
    assert used and used <= known, used - known


def test_a_set_that_is_left_out_is_not_counted() -> None:
    assert ("norm:default", ["x86_64_v3", "x86_64_v4"]) in generated.sets("norm")
    assert {name for name, _ in generated.sets("gemm")} == {"gemm:essential", "gemm:release"}
