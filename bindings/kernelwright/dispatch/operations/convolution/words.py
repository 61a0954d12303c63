"""The spec fields that a convolution requires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.problems.convolution.problem import ConvProblem

_EPILOGUE = ("bias", "residual", "activation")


def asked(problem: ConvProblem, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that a kernel's spec must have to serve the problem, without those that ``spec`` serves anyway."""
    fields: dict[str, Any] = {"op": "convolution"}
    fields |= {name: getattr(problem, name) for name in ("direction", "dtype", "layout", *_EPILOGUE)}
    if spec.get("activation") == "any":
        fields = {name: value for name, value in fields.items() if name not in _EPILOGUE}
    innermost = "ngchw" not in (problem.layout, spec.get("layout"))
    if innermost and len(problem.layout) < len(spec.get("layout", "")):
        del fields["layout"]  # missing dimensions are extents of 1
    return fields
