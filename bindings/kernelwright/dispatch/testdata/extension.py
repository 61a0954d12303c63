"""The C ABI struct of GEMM kernels with preshuffled B, in ctypes."""

from __future__ import annotations

import ctypes
from ctypes import CFUNCTYPE, c_int32, c_uint32, c_void_p


class GemmExtension(ctypes.Structure):
    """``kw_gemm_extension``, which ``kw_kernel.extension`` of a kernel that shuffles B points to."""

    _fields_ = [
        *[(name, c_uint32) for name in ("struct_size", "reserved")],
        ("shuffle_b_bytes", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p)),
        ("shuffle_b", CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_void_p)),
    ]
