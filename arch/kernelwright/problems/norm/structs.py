"""The structs of norms in ctypes."""

from __future__ import annotations

import ctypes

from kernelwright.problems.norm import description
from kernelwright.problems.structs import members


class NormProblem(ctypes.Structure):
    """``kw_norm_problem``."""

    _fields_ = members(description.PROBLEM)


class NormArgs(ctypes.Structure):
    """``kw_norm_args``."""

    _fields_ = members(description.ARGS)


class NormTraits(ctypes.Structure):
    """``kw_norm_traits``, which ``kw_kernel.traits`` of a norm kernel points to."""

    _fields_ = members(description.TRAITS)
