"""The attention kernels of known_bad/attention.hpp: launch and reference."""

from __future__ import annotations

import math
import struct

import numpy as np

from kernelwright.simulator.run.launch import Buffer, Simulator

LOG2_E = math.log2(math.e)
ROWS = 128  # queries per workgroup
BLOCK = 256


def error(image: bytes, kernel: str, *, queries: int, keys: int, width: int, heads: int = 1, scale: float) -> float:
    """Largest error of softmax(Q Kᵀ / √width) V, relative to its largest element; NaN counts as infinite.

    ``scale`` is what the kernel gets as factor of Q Kᵀ. Fault for what the kernel does wrong.
    """
    rng = np.random.default_rng([queries, keys, width])
    q, k, v = (rng.standard_normal((heads, length, width)).astype(np.float16) for length in (queries, keys, keys))
    o = np.full((heads, queries, width), np.nan, np.float16)
    pointers = [array.ctypes.data for array in (q, k, v, o)]
    Simulator().launch(
        image,
        kernel,
        grid=(heads, math.ceil(queries / ROWS), 1),
        block=(BLOCK, 1, 1),
        arguments=struct.pack("<4Q3if", *pointers, queries, keys, heads, scale),
        buffers=[
            Buffer(array.ctypes.data, array.nbytes, writable=array is o, name=name)
            for name, array in (("Q", q), ("K", k), ("V", v), ("O", o))
        ],
    )
    wanted = reference(q, k, v)
    difference = np.abs(o.astype(np.float64) - wanted)
    return math.inf if np.isnan(difference).any() else float(difference.max() / np.abs(wanted).max())


def reference(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """In float64."""
    q64, k64, v64 = (array.astype(np.float64) for array in (q, k, v))
    scores = q64 @ k64.transpose(0, 2, 1) / math.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result: np.ndarray = (weights / weights.sum(-1, keepdims=True)) @ v64
    return result
