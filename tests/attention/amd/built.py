"""A small library of AMD attention kernels, compiled as a build compiles them.

Needs the toolchain wheels: KERNELWRIGHT_TREES names a JSON file ``{tree: folder}``.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from compiling import executor, own_folder
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.dispatch import KernelLibrary

_HALF: dict[str, Any] = {"op": "attention", "dtype": "fp16", "hdim": 64}
CORE: tuple[dict[str, Any], ...] = (
    {**_HALF, "family": "fwd", "mask": "generic", "lse": True},
    {**_HALF, "family": "fwd_splitkv"},
    {**_HALF, "family": "fwd_splitkv_combine", "lse": True},
    {**_HALF, "family": "fwd_appendkv", "paged_kv": True, "rope": "half"},
    {**_HALF, "family": "bwd_dot_do_o"},
    {**_HALF, "family": "bwd_dq_dk_dv", "mask": "generic"},
    {**_HALF, "family": "bwd_convert_dq"},
)
"""Forward, decoding and backward: 45 processor seconds."""
RAGGED: tuple[dict[str, Any], ...] = (
    {**_HALF, "family": "fwd", "mask": "generic", "lse": True, "group": True},
    {**_HALF, "hdim": 128, "family": "batch_prefill", "mask": "generic", "lse": True},
    {**_HALF, "hdim": 128, "family": "fwd_pagedkv", "mask": "generic"},
)
"""Requests with lengths of their own, and pages: 30 processor seconds."""
_NARROW: dict[str, Any] = {"op": "attention", "dtype": "fp8bf16", "hdim": 64}
NARROW: tuple[dict[str, Any], ...] = (
    {**_NARROW, "family": "fwd", "mask": "generic", "lse": True, "qscale": "per_tensor"},
)
"""8-bit operands: 8 processor seconds."""
NARROW_CACHES: tuple[dict[str, Any], ...] = (
    {**_NARROW, "family": "fwd", "dtype": "fp8", "mask": "generic", "lse": True, "qscale": "per_tensor"},
    {**_NARROW, "family": "fwd_splitkv", "mask": "generic", "static_quant": True},
    {**_HALF, "family": "fwd_splitkv_combine", "dtype": "bf16", "lse": True},
    {**_NARROW, "family": "fwd_pagedkv", "mask": "generic", "group": True, "lse": True, "static_quant": True},
    {**_NARROW, "family": "fwd_appendkv", "dtype": "fp8", "paged_kv": True},
)
"""8-bit results, and caches of 8 bits."""
_CAPPED: dict[str, Any] = {"op": "attention", "dtype": "bf16", "mask": "generic", "logits_soft_cap": True}
CAPPED: tuple[dict[str, Any], ...] = (
    {**_CAPPED, "family": "batch_prefill", "hdim": 128, "lse": True},
    {**_CAPPED, "family": "fwd_splitkv", "hdim": 256, "paged_kv": True, "tile": [64, 64, 32, 256, 32, 256]},
    {"op": "attention", "family": "fwd_splitkv_combine", "dtype": "bf16", "hdim": 256, "lse": True},
)
"""Pages and a soft cap, with a tile of 64 keys where head dimensions are large."""
_SPECS = {"capped": CAPPED, "core": CORE, "ragged": RAGGED, "narrow": NARROW, "narrow_caches": NARROW_CACHES}


@cache
def library(arch: str, name: str) -> KernelLibrary:
    """The library of :data:`CORE` (``"core"``), :data:`RAGGED` (``"ragged"``) and so on for an architecture."""
    selections = select("specs", list(_SPECS[name]), [arch], load_archs())
    own = own_folder() / f"{arch}_{name}"
    (manifest,) = build_libraries("attention", selections, DEFAULT_TOOLCHAINS, executor(), own)
    return KernelLibrary.load(manifest.parent)
