"""Problems of operations, defined once for C, Python and JSON; needs nothing but the standard library.

Classes are imported at their first use: readers of one description need not wait for all of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelwright.problems.attention.append_problem import AppendProblem
    from kernelwright.problems.attention.problem import AttentionProblem
    from kernelwright.problems.convolution.problem import ConvProblem
    from kernelwright.problems.errors import ProblemError
    from kernelwright.problems.gemm.grouped_problem import GroupedGemmProblem
    from kernelwright.problems.gemm.problem import GemmProblem
    from kernelwright.problems.norm.problem import NormProblem

__all__ = [
    "AppendProblem",
    "AttentionProblem",
    "ConvProblem",
    "GemmProblem",
    "GroupedGemmProblem",
    "NormProblem",
    "ProblemError",
]

_MODULES = {
    "AppendProblem": "attention.append_problem",
    "AttentionProblem": "attention.problem",
    "ConvProblem": "convolution.problem",
    "GemmProblem": "gemm.problem",
    "GroupedGemmProblem": "gemm.grouped_problem",
    "NormProblem": "norm.problem",
    "ProblemError": "errors",
}


def __getattr__(name: str) -> Any:
    """Import the module of a class."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    """What the package offers."""
    return sorted({*globals(), *__all__})
