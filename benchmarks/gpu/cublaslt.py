"""cuBLASLt's own choices: the first few algorithms that its heuristic returns for a product, as calls.

torch takes the first one. The functions and constants are those of cublasLt.h
(https://docs.nvidia.com/cuda/cublas/#using-the-cublaslt-api); the library is the one that torch has loaded.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from timing import Call, Operands

_COMPUTE_FP32, _FP32 = 68, 0  # CUBLAS_COMPUTE_32F, CUDA_R_32F
_KIND = {"bf16": 14, "fp16": 2, "fp8": 28}  # CUDA_R_16BF, CUDA_R_16F, CUDA_R_8F_E4M3
_TRANSPOSE_A, _SCALE_A, _SCALE_B, _FAST = 3, 17, 18, 25  # CUBLASLT_MATMUL_DESC_…
_WORKSPACE_LIMIT = 1  # CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
_WORKSPACE_BYTES = 32 << 20  # torch's default on Hopper


class _Algorithm(ctypes.Structure):
    _fields_ = (("data", ctypes.c_uint64 * 8),)


class _Found(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = (
        ("algorithm", _Algorithm),
        ("workspace", ctypes.c_size_t),
        ("state", ctypes.c_int),
        ("waves", ctypes.c_float),
        ("reserved", ctypes.c_int * 4),
    )


class CublasLt:
    """A handle of cuBLASLt on the current device."""

    def __init__(self) -> None:
        """Create the handle. Raises RuntimeError if torch has not loaded cuBLASLt or if it refuses."""
        one = torch.ones(16, 16, device="cuda", dtype=torch.bfloat16)
        torch.mm(one, one)
        maps = Path("/proc/self/maps").read_text().split()
        paths = [word for word in maps if Path(word).name.startswith("libcublasLt.so")]
        if not paths:
            raise RuntimeError("torch has not loaded libcublasLt.so")
        self._library = ctypes.CDLL(paths[0])
        self._handle = ctypes.c_void_p()
        self._call("cublasLtCreate", ctypes.byref(self._handle))
        self._workspace = torch.empty(_WORKSPACE_BYTES, dtype=torch.uint8, device="cuda")
        self._scale = torch.ones((), device="cuda")
        self._one, self._zero = ctypes.c_float(1), ctypes.c_float(0)

    def calls(self, sets: Sequence[Operands], dtype: str, most: int) -> list[Call]:
        """Calls that compute A·Bᵀ, one for each of the first ``most`` algorithms that the heuristic returns."""
        (m, k), n = sets[0][0].shape, sets[0][1].shape[0]
        product = ctypes.c_void_p()
        self._call("cublasLtMatmulDescCreate", ctypes.byref(product), _COMPUTE_FP32, _FP32)
        self._set("cublasLtMatmulDescSetAttribute", product, _TRANSPOSE_A, ctypes.c_int32(1))
        if dtype == "fp8":
            for name in (_SCALE_A, _SCALE_B):
                self._set("cublasLtMatmulDescSetAttribute", product, name, ctypes.c_void_p(self._scale.data_ptr()))
            self._set("cublasLtMatmulDescSetAttribute", product, _FAST, ctypes.c_int8(1))
        # Row-major D = A·Bᵀ is column-major Dᵀ = B·Aᵀ: B as stored is k x n and must be transposed.
        kind, result = _KIND[dtype], _KIND["fp16" if dtype == "fp16" else "bf16"]
        first, second, out = self._layout(kind, k, n), self._layout(kind, k, m), self._layout(result, n, m)
        preference = ctypes.c_void_p()
        self._call("cublasLtMatmulPreferenceCreate", ctypes.byref(preference))
        limit = ctypes.c_size_t(_WORKSPACE_BYTES)
        self._set("cublasLtMatmulPreferenceSetAttribute", preference, _WORKSPACE_LIMIT, limit)
        algos, count = (_Found * most)(), ctypes.c_int()
        described = (self._handle, product, first, second, out, out, preference)
        self._call("cublasLtMatmulAlgoGetHeuristic", *described, most, algos, ctypes.byref(count))
        layouts = (product, first, second, out)
        return [self._launch(sets, layouts, algos[number]) for number in range(count.value) if not algos[number].state]

    def _launch(self, sets: Sequence[Operands], layouts: tuple[Any, ...], chosen: _Found) -> Call:
        product, first, second, result = layouts
        algorithm = _Algorithm.from_buffer_copy(chosen.algorithm)

        def call(number: int) -> None:
            a, b, out = (ctypes.c_void_p(x.data_ptr()) for x in sets[number % len(sets)])
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            self._call(
                "cublasLtMatmul", self._handle, product, ctypes.byref(self._one), b, first, a, second,
                ctypes.byref(self._zero), out, result, out, result, ctypes.byref(algorithm),
                ctypes.c_void_p(self._workspace.data_ptr()), ctypes.c_size_t(_WORKSPACE_BYTES), stream,
            )  # fmt: skip

        return call

    def _layout(self, kind: int, rows: int, columns: int) -> ctypes.c_void_p:
        made = ctypes.c_void_p()
        extents = (ctypes.c_uint64(rows), ctypes.c_uint64(columns), ctypes.c_int64(rows))
        self._call("cublasLtMatrixLayoutCreate", ctypes.byref(made), kind, *extents)
        return made

    def _set(self, function: str, owner: ctypes.c_void_p, name: int, value: Any) -> None:
        self._call(function, owner, name, ctypes.byref(value), ctypes.c_size_t(ctypes.sizeof(value)))

    def _call(self, name: str, *arguments: Any) -> None:
        if status := getattr(self._library, name)(*arguments):
            raise RuntimeError(f"{name} failed with cuBLAS status {status}")
