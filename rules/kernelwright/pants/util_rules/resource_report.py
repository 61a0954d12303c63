"""Resources of compiled kernels, as ``kernelwright info`` prints them."""

from __future__ import annotations

import json
from dataclasses import dataclass

from kernelwright.pants.compat import implicitly, rule
from kernelwright.pants.engine import digests
from kernelwright.pants.util_rules import codegen, library
from kernelwright.pants.util_rules.codegen import CodegenRequest
from kernelwright.pants.util_rules.library import LibraryRequest
from pants.engine.rules import collect_rules
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
    planned = await library.plan_library(LibraryRequest("kernels", texts, "the kernels goal"), **implicitly())
    built = await library.build_libraries(planned, **implicitly())
    manifests, costs = {}, {}
    for one in built.libraries:
        files = await digests.read(await digests.subset(one.digest, [f"{one.arch}/manifest.json"]))
        manifests[one.arch] = json.loads(files[f"{one.arch}/manifest.json"])
        costs[one.arch] = {"kernels": {name: {"cpu_s": seconds} for name, seconds in one.seconds}}
    body = json.dumps({"stage": "report", "manifests": manifests, "costs": costs}, sort_keys=True)
    asked = CodegenRequest("plan", body, "Report the resources of kernels", "the kernels goal")
    response = await codegen.run_codegen(asked, **implicitly())
    return ResourceReport(response.parse()["text"])


def rules() -> list[object]:
    return [*collect_rules()]
