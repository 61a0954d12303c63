"""What reads the resources of a kernel (registers, LDS, spills, …) out of the report that its actions name."""

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
        """The resources by the names that the manifest has."""


def report_reader(backend: str) -> ReportReader:
    """The reader of a backend's reports; SpecError for a backend that does not exist."""
    return cast(ReportReader, _module(backend).read_report)


def _module(backend: str) -> ModuleType:
    if backend not in _READERS:
        raise SpecError(f"unknown backend {backend!r}; allowed: {', '.join(_READERS)}")
    return importlib.import_module(_READERS[backend])
