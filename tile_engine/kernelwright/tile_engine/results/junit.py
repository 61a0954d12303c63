"""Rows as JUnit XML for continuous integration: a suite per problem, a case per kernel."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from kernelwright.tile_engine.measuring.measure import OK, REFUSED


def write_junit(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as JUnit XML. Refused kernels are skipped cases; everything but a correct result is a failure."""
    root = ElementTree.Element("testsuites", name="tile-engine")
    suites: dict[str, ElementTree.Element] = {}
    for row in rows:
        index = str(row["problem_idx"])
        if index not in suites:
            suites[index] = ElementTree.SubElement(root, "testsuite", name=f"problem {index}")
        seconds = float(row["latency_ms"] or 0) / 1e3
        case = ElementTree.SubElement(suites[index], "testcase", name=str(row["kernel"]), time=f"{seconds:.9f}")
        case.set("classname", f"problem_{index}")
        if row["status"] == REFUSED:
            ElementTree.SubElement(case, "skipped", message=str(row["reason"]))
        elif row["status"] != OK:
            ElementTree.SubElement(case, "failure", message=str(row["reason"]), type=str(row["status"]))
    for suite in suites.values():
        suite.set("tests", str(len(suite)))
        for tag, name in (("failure", "failures"), ("skipped", "skipped")):
            suite.set(name, str(sum(case.find(tag) is not None for case in suite)))
    ElementTree.indent(root)
    path.write_bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True))
