"""The resources that compiled kernels use, as ``kernelwright info`` prints them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from kernelwright.pants.engine import digests
from kernelwright.pants.util_rules.codegen import CodegenRequest, CodegenResponse
from kernelwright.pants.util_rules.library import BuiltLibraries, LibraryRequest, PlannedLibraries
from pants.engine.rules import Get, collect_rules, rule
from pants.util.logging import LogLevel


@dataclass(frozen=True)
class ResourceReportRequest:
    """Kernels as JSON texts ``{"arch", "spec"}``; their limits are ignored, to show kernels that exceed them."""

    kernels: tuple[str, ...]


@dataclass(frozen=True)
class ResourceReport:
    """A table for each architecture."""

    text: str


@rule(desc="Report the resources of kernels", level=LogLevel.DEBUG)
async def report_resources(request: ResourceReportRequest) -> ResourceReport:
    kernels = [json.loads(kernel) for kernel in request.kernels]
    texts = tuple(json.dumps({"arch": one["arch"], "spec": one["spec"]}, sort_keys=True) for one in kernels)
    planned = await Get(PlannedLibraries, LibraryRequest("kernels", texts, "the kernels goal"))
    built = await Get(BuiltLibraries, PlannedLibraries, planned)
    manifests, costs = {}, {}
    for library in built.libraries:
        files = await digests.read(await digests.subset(library.digest, [f"{library.arch}/manifest.json"]))
        manifests[library.arch] = json.loads(files[f"{library.arch}/manifest.json"])
        costs[library.arch] = {"kernels": {name: {"cpu_s": seconds} for name, seconds in library.seconds}}
    body = json.dumps({"stage": "report", "manifests": manifests, "costs": costs}, sort_keys=True)
    response = await Get(
        CodegenResponse, CodegenRequest("plan", body, "Report the resources of kernels", "the kernels goal")
    )
    return ResourceReport(response.parse()["text"])


def rules() -> list[object]:
    return [*collect_rules()]
