"""Kernels of targets: partial specs in BUILD files, and the complete kernels that the generator makes from them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional

from kernelwright.pants.compat import implicitly, rule
from kernelwright.pants.targets.kernel import KernelArchField, KernelTarget, LimitsField
from kernelwright.pants.targets.kernel_set import ExpandedKernelField
from kernelwright.pants.util_rules import codegen
from kernelwright.pants.util_rules.codegen import CodegenRequest
from pants.engine.fs import EMPTY_DIGEST, Digest
from pants.engine.rules import collect_rules
from pants.engine.target import Target
from pants.util.logging import LogLevel


def kernel_of_target(target: Target) -> Optional[dict[str, Any]]:
    """Return ``{"arch", "spec", "origin"}`` and any stated ``limits`` of a kernel target; None for other targets.

    The spec may omit fields.
    """
    origin = str(target.address)
    if target.has_field(ExpandedKernelField):
        return {**json.loads(target[ExpandedKernelField].value.canonical), "origin": origin}
    if not isinstance(target, KernelTarget):
        return None
    limits = target[LimitsField].value
    stated = {} if limits is None else {"limits": dict(limits)}
    return {"arch": target[KernelArchField].value, "spec": target.spec(), "origin": origin, **stated}


@dataclass(frozen=True)
class ExpandRequest:
    """A rule set or configuration for each architecture, as one JSON text that names no file of the workspace."""

    request: str
    origin: str
    config: Digest = EMPTY_DIGEST


@dataclass(frozen=True)
class ExpandedKernel:
    """One kernel of a set: its readable name and its canonical JSON, with any stated limits."""

    arch: str
    name: str
    identity: str
    canonical: str


@dataclass(frozen=True)
class ExpandedKernels:
    """All kernels of a set in the generator's order."""

    kernels: tuple[ExpandedKernel, ...]


@rule(desc="Expand a kernel set", level=LogLevel.DEBUG)
async def expand_kernels(request: ExpandRequest) -> ExpandedKernels:
    asked = CodegenRequest("plan", request.request, f"Expand {request.origin}", request.origin, request.config)
    response = await codegen.run_codegen(asked, **implicitly())
    return ExpandedKernels(
        tuple(
            ExpandedKernel(
                arch=kernel["arch"],
                name=kernel["name"],
                identity=kernel["identity"],
                canonical=json.dumps(
                    {key: kernel[key] for key in ("arch", "limits", "spec") if key in kernel},
                    sort_keys=True,
                    separators=(",", ":"),
                ),
            )
            for kernel in response.parse()["kernels"]
        )
    )


def rules() -> list[object]:
    return [*collect_rules()]
