"""The GEMM structs of the C ABI in ctypes."""

from __future__ import annotations

import ctypes

from kernelwright.problems.gemm import description
from kernelwright.problems.structs import members


class GemmProblem(ctypes.Structure):
    """``kw_gemm_problem``."""

    _fields_ = members(description.PROBLEM)


class GemmArgs(ctypes.Structure):
    """``kw_gemm_args``."""

    _fields_ = members(description.ARGS)


class GemmGroup(ctypes.Structure):
    """``kw_gemm_group``."""

    _fields_ = members(description.GROUP)


_POINTERS = {
    "const kw_gemm_group*": ctypes.POINTER(GemmGroup),
    **dict.fromkeys(("const void* const*", "void* const*"), ctypes.POINTER(ctypes.c_void_p)),
}


class GroupedGemmProblem(ctypes.Structure):
    """``kw_grouped_gemm_problem``."""

    _fields_ = members(description.GROUPED_PROBLEM, _POINTERS)


class GroupedGemmArgs(ctypes.Structure):
    """``kw_grouped_gemm_args``."""

    _fields_ = members(description.GROUPED_ARGS, _POINTERS)


class GemmTraits(ctypes.Structure):
    """``kw_gemm_traits``, which ``kw_kernel.traits`` of a GEMM kernel points to."""

    _fields_ = members(description.TRAITS)
