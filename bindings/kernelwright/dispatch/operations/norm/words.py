"""The spec fields that a norm requires of a kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernelwright.problems.norm.problem import NormProblem


def asked(problem: NormProblem, spec: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that a kernel's spec must have to serve the problem; ``spec`` makes no difference."""
    direction = "backward" if problem.backward else "forward"
    return {
        "op": "norm", "kind": problem.kind, "direction": direction, "dtype": problem.dtype, "dtype_y": problem.dtype_y,
    }  # fmt: skip
