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


class CountsReader(Protocol):
    """Counts what the code of a report's kernel does, on an instruction set, with so many SIMDs in a compute unit."""

    def __call__(
        self, data: bytes, expects: Expectation, instructions: str, simds: int, resources: dict[str, Any]
    ) -> dict[str, Any]:
        """The counts by the names that the manifest has; ``resources`` are what the report reader found."""


def counts_reader(backend: str) -> CountsReader | None:
    """What counts the code of a backend's kernels; None if nothing does."""
    return cast("CountsReader | None", getattr(_module(backend), "read_counted", None))


def report_reader(backend: str) -> ReportReader:
    """The reader of a backend's reports; SpecError for a backend that does not exist."""
    return cast(ReportReader, _module(backend).read_report)


def _module(backend: str) -> ModuleType:
    if backend not in _READERS:
        raise SpecError(f"unknown backend {backend!r}; allowed: {', '.join(_READERS)}")
    return importlib.import_module(_READERS[backend])
