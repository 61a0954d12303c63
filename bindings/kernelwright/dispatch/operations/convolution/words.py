"""Human-readable descriptions of convolution kernels, and the spec fields that a problem requires."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.dispatch.core.kernel import extents
from kernelwright.problems.convolution.problem import ConvProblem

_EPILOGUE = ("bias", "residual", "activation")


def short(spec: Mapping[str, Any]) -> str:
    """Such as ``forward bf16 nhwgc 128x128x32 +bias gelu``: direction, dtype, layout, tile, and special features."""
    words = [spec["direction"], spec["dtype"], spec["layout"], extents(spec["tile"])]
    words += [spec["pipeline"]] if spec.get("pipeline", "packed") != "packed" else []
    words += ["depthwise"] if spec.get("depthwise") else []
    if spec.get("activation") == "any":
        return " ".join([*words, "any epilogue"])
    words += [f"+{part}" for part in ("bias", "residual") if spec.get(part)]
    words += [spec["activation"]] if spec.get("activation", "none") != "none" else []
    return " ".join([*words, *(part for part in ("split_image", "two_stage") if spec.get(part))])


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
