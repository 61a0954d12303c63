"""``check``: every kernel of a library is legal, compiles, and contains the code that its operation expects.

All of that is part of building the library: the generator refuses illegal kernels, and compiled ones without the
instructions that they must have.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from kernelwright.pants.compat import concurrently, implicitly, rule
from kernelwright.pants.engine import digests, graph
from kernelwright.pants.targets.kernel_library import LibraryKernelsField, LibraryNameField
from kernelwright.pants.util_rules.library import build
from pants.core.goals.check import CheckRequest, CheckResult, CheckResults
from pants.engine.rules import collect_rules
from pants.engine.target import FieldSet
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


@dataclass(frozen=True)
class KernelLibraryCheckFieldSet(FieldSet):
    """Marks ``kernel_library`` targets for the ``check`` goal."""

    required_fields = (LibraryKernelsField, LibraryNameField)


class KernelLibraryCheckRequest(CheckRequest[KernelLibraryCheckFieldSet]):
    """All named libraries."""

    field_set_type = KernelLibraryCheckFieldSet
    tool_name = "kernelwright-kernels"


@dataclass(frozen=True)
class CheckOneLibrary:
    """One library by its field set."""

    field_set: KernelLibraryCheckFieldSet


@rule(desc="Check kernel library", level=LogLevel.DEBUG)
async def check_library(request: CheckOneLibrary) -> CheckResult:
    address = request.field_set.address
    built = await build(await graph.target_at(address, "the check goal"))
    lines = []
    for library in built.libraries:
        files = await digests.read(await digests.subset(library.digest, [f"{library.arch}/manifest.json"]))
        manifest = json.loads(files[f"{library.arch}/manifest.json"])
        lines.append(f"{address} {library.arch}: {len(manifest['kernels'])} kernels")
    return CheckResult(0, "\n".join(lines), "", partition_description=str(address))


@rule(desc="Check kernel libraries", level=LogLevel.DEBUG)
async def check_libraries(request: KernelLibraryCheckRequest) -> CheckResults:
    results = await concurrently(
        check_library(CheckOneLibrary(field_set), **implicitly()) for field_set in request.field_sets
    )
    return CheckResults(results, checker_name=request.tool_name)


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(CheckRequest, KernelLibraryCheckRequest)]
