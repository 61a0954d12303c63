"""Readers of a kernel's resources (registers, LDS, spills, …) in the report that its actions name."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Protocol, cast

from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.violations import SpecError

_READERS: Mapping[str, str] = {
    "cpu": "kernelwright.codegen.resources.cpu",
    "ck_tile": "kernelwright.codegen.resources.ck_tile",
    "cutlass": "kernelwright.codegen.resources.cutlass",
}


class ReportReader(Protocol):
    """Reads the bytes of a report; ValueError if they do not show what is expected."""

    def __call__(self, data: bytes, expects: Expectation) -> dict[str, Any] | None:
        """Return the resources by their names in the manifest."""


def report_reader(backend: str) -> ReportReader:
    """Return the reader of a backend's reports; SpecError for an unknown backend."""
    return cast(ReportReader, _module(backend).read_report)


def _module(backend: str) -> ModuleType:
    if backend not in _READERS:
        raise SpecError(f"unknown backend {backend!r}; allowed: {', '.join(_READERS)}")
    return importlib.import_module(_READERS[backend])
