"""The convolution structs of the C ABI in ctypes."""

from __future__ import annotations

import ctypes

from kernelwright.problems.convolution import description
from kernelwright.problems.structs import members


class ConvProblem(ctypes.Structure):
    """``kw_conv_problem``."""

    _fields_ = members(description.PROBLEM)


class ConvArgs(ctypes.Structure):
    """``kw_conv_args``."""

    _fields_ = members(description.ARGS)


class ConvTraits(ctypes.Structure):
    """``kw_conv_traits``, which ``kw_kernel.traits`` of a convolution kernel points to."""

    _fields_ = members(description.TRAITS)
