"""``check``: every kernel of a library is legal, compiles, and contains what its description promises."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterator, Mapping

from kernelwright.pants.engine import digests, graph
from kernelwright.pants.targets.kernel_library import LibraryKernelsField, LibraryNameField
from kernelwright.pants.util_rules.library import build
from pants.core.goals.check import CheckRequest, CheckResult, CheckResults
from pants.engine.rules import Get, MultiGet, collect_rules, rule
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
    lines, failures = [], 0
    for library in built.libraries:
        files = await digests.read(await digests.subset(library.digest, [f"{library.arch}/manifest.json"]))
        manifest = json.loads(files[f"{library.arch}/manifest.json"])
        problems = list(findings(manifest))
        failures += len(problems)
        lines.append(f"{address} {library.arch}: {len(manifest['kernels'])} kernels, {len(problems)} problems")
        lines.extend(f"  {problem}" for problem in problems)
    return CheckResult(1 if failures else 0, "\n".join(lines), "", partition_description=str(address))


def findings(manifest: Mapping[str, Any]) -> Iterator[str]:
    """One sentence for each kernel whose compiled code cannot be correct.

    A CK Tile kernel for a matrix instruction that the architecture lacks compiles and links, and computes nothing; the
    absence of matrix instructions is how that shows.
    """
    for kernel in manifest["kernels"]:
        resources = kernel.get("resources") or {}
        if resources.get("matrix_instructions", 1) == 0:
            yield (
                f"{kernel['name']}: contains no matrix instruction, so it computes nothing; "
                f"choose a warp_tile and dtype that {manifest['arch']} has"
            )


@rule(desc="Check kernel libraries", level=LogLevel.DEBUG)
async def check_libraries(request: KernelLibraryCheckRequest) -> CheckResults:
    results = await MultiGet(Get(CheckResult, CheckOneLibrary(field_set)) for field_set in request.field_sets)
    return CheckResults(results, checker_name=request.tool_name)


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(CheckRequest, KernelLibraryCheckRequest)]
