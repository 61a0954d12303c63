"""Kernels of targets: what BUILD files say, and what the code generator makes of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Optional

from kernelwright.pants.target_types import (
    EXTENT_FIELDS,
    SCALAR_SPEC_FIELDS,
    ExpandedKernelField,
    KernelArchField,
    LimitsField,
    PadField,
)
from kernelwright.pants.util_rules.codegen import CodegenRequest, CodegenResponse
from pants.engine.fs import EMPTY_DIGEST, Digest
from pants.engine.rules import Get, collect_rules, rule
from pants.engine.target import Target
from pants.util.logging import LogLevel

_AXES = ("m", "n", "k")


def kernel_of_target(target: Target) -> Optional[dict[str, Any]]:
    """``{"arch", "spec", "origin"}``, and ``limits`` if some are stated, of a target that is a kernel.

    The spec may leave fields out.
    """
    origin = str(target.address)
    if target.has_field(ExpandedKernelField):
        return {**json.loads(target[ExpandedKernelField].value.canonical), "origin": origin}
    if not target.has_field(KernelArchField):
        return None
    spec: dict[str, Any] = {"op": "gemm"}
    for scalar in SCALAR_SPEC_FIELDS:
        if target[scalar].value is not None:
            spec[scalar.alias] = target[scalar].value
    for extent in (*EXTENT_FIELDS, PadField):
        value = target[extent].value
        if value is None:
            continue
        if len(value) != len(_AXES):
            raise ValueError(
                f"{origin}: the field {extent.alias} has {len(value)} values; "
                f"allowed: {extent.expected_type_description}"
            )
        spec[extent.alias] = dict(zip(_AXES, value))
    limits = target[LimitsField].value
    stated = {} if limits is None else {"limits": dict(limits)}
    return {"arch": target[KernelArchField].value, "spec": spec, "origin": origin, **stated}


@dataclass(frozen=True)
class ExpandRequest:
    """A rule set or a config, times architectures, as one JSON text that names no file of the workspace."""

    request: str
    origin: str
    config: Digest = EMPTY_DIGEST


@dataclass(frozen=True)
class ExpandedKernel:
    """One kernel of a set: its readable name and its canonical JSON, with limits if some are stated."""

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
    response = await Get(
        CodegenResponse,
        CodegenRequest("plan", request.request, f"Expand {request.origin}", request.origin, request.config),
    )
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
