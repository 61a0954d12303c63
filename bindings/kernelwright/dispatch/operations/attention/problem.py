"""Problems of attention, checked by the dispatcher: rules across several fields exist in C++ only."""

from __future__ import annotations

import ctypes

from kernelwright.dispatch.core import native
from kernelwright.problems.attention import append_problem, problem


class AttentionProblem(problem.AttentionProblem):
    """See :class:`kernelwright.problems.attention.problem.AttentionProblem`."""

    __doc__ = problem.AttentionProblem.__doc__

    def __post_init__(self) -> None:
        """Fill in derived fields, then check everything."""
        super().__post_init__()
        _check(self.native())


class AppendProblem(append_problem.AppendProblem):
    """See :class:`kernelwright.problems.attention.append_problem.AppendProblem`."""

    __doc__ = append_problem.AppendProblem.__doc__

    def __post_init__(self) -> None:
        """Fill in derived fields, then check everything."""
        super().__post_init__()
        _check(self.native())


def _check(struct: ctypes.Structure) -> None:
    native.check(native.library().kw_problem_validate(native.byref(struct)))
