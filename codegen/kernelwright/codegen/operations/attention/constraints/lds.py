"""Bytes of LDS that CK Tile's forward pipelines use, by CK Tile's own arithmetic.

Sources: GetSmemSizeKV, MakeVLdsBlockDescriptor and GetSingleSmemElementSpaceSize in
block_fmha_pipeline_qx_ks_vs_custom_policy.hpp of the pinned CK Tile.
"""

from __future__ import annotations

from kernelwright.arch import Arch
from kernelwright.codegen.dtypes import ELEMENT_BYTES
from kernelwright.codegen.operations.attention.arch_section import attention_section
from kernelwright.codegen.operations.attention.kinds import Pipeline
from kernelwright.codegen.operations.attention.spec import AttentionSpec

_ASYNC = (Pipeline.QR_ASYNC, Pipeline.QR_ASYNC_TRLOAD, Pipeline.QR_ASYNC_TRLOAD_V3, Pipeline.V3)
_BUFFERS = 3  # buffers of K and V in turn; NumPrefetchK and NumPrefetchV of the async policy
_BANK_BYTES = 4
_VECTOR_BYTES = 16


def lds_bytes(spec: AttentionSpec, arch: Arch) -> int:
    """Return the bytes of LDS of a forward kernel's workgroup; 0 for extents that other rules refuse."""
    if spec.pipeline in _ASYNC:
        return kv_bytes(spec, arch)
    return (spec.tile.m0 + spec.tile.n0) * spec.tile.k0 * ELEMENT_BYTES[spec.dtype.inputs]


def kv_bytes(spec: AttentionSpec, arch: Arch) -> int:
    """Return the bytes of the buffers that asynchronous loads of K and V fill in turn."""
    size = ELEMENT_BYTES[spec.dtype.inputs]
    pack = _VECTOR_BYTES // size
    row = attention_section(arch).lds_banks * _BANK_BYTES // size  # elements in a row of banks
    v = (spec.tile.k1 // pack) * (spec.tile.n1 // (row // pack)) * (row + pack)
    vector = vector_elements(spec, arch)
    waves = max(1, spec.wave.m0 * spec.wave.n0 * spec.wave.k0)
    lanes = max(1, spec.tile.k1 // vector)  # lanes that load one row of K, which is k1 wide in LDS
    rows = max(1, arch.wave_size // lanes)  # rows of K that a wave loads at once
    issues = spec.tile.n0 // (rows * waves)
    k = issues * waves * (arch.wave_size * vector + pack)
    return _BUFFERS * max(k, v) * size


def vector_elements(spec: AttentionSpec, arch: Arch) -> int:
    """The elements that a work-item loads straight into LDS at once: 16 bytes if the architecture can, else 4."""
    wide = _VECTOR_BYTES if arch.wide_direct_lds_loads else _BANK_BYTES
    return wide // ELEMENT_BYTES[spec.dtype.inputs]
