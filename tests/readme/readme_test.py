from __future__ import annotations

import re
import xml.etree.ElementTree as xml

from readme import generated


def test_the_table_and_the_picture_are_what_the_script_writes() -> None:
    text = generated.README.read_text()
    assert generated.page(text) == text
    assert generated.ROAD.read_text() == generated.road()
    xml.fromstring(generated.road())


def test_the_page_is_short_and_its_links_lead_somewhere() -> None:
    text = generated.README.read_text()
    assert len(text.splitlines()) <= 80
    linked = re.findall(r"\]\((docs/[^)#:]+)", text)
    assert len(linked) > 20
    assert [target for target in linked if not (generated.ROOT / target).exists()] == []


def test_a_set_that_is_left_out_is_not_counted() -> None:
    assert ("norm:default", ["x86_64_v3", "x86_64_v4"]) in generated.sets("norm")
    assert {name for name, _ in generated.sets("gemm")} == {"gemm:essential", "gemm:release"}
