"""A small library of AMD convolution kernels for each architecture, compiled as a build compiles them.

Needs the toolchain wheels: KERNELWRIGHT_TREES names a JSON file ``{tree: folder}``.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from compiling import executor, own_folder
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.dispatch import KernelLibrary

_LARGE = {"tile": [128, 128, 32], "wave": [2, 2, 1], "warp_tile": [32, 32, 16]}
_DEEP = {**_LARGE, "tile": [128, 128, 64]}
_SHORT = {**_LARGE, "warp_tile": [32, 32, 8]}
_SMALL = {"tile": [64, 64, 32], "wave": [1, 1, 1], "warp_tile": [32, 32, 16]}

SPECS: Mapping[str, tuple[dict[str, Any], ...]] = {
    "gfx90a": ({"direction": "backward_data", "dtype": "bf16", "layout": "ndhwgc", "pipeline": "compv1", **_LARGE},),
    "gfx942": (
        {"direction": "forward", "dtype": "fp16", "layout": "nhwgc", "pipeline": "compv3", **_DEEP},
        {"direction": "backward_data", "dtype": "fp16", "layout": "nhwgc", "pipeline": "compv3", **_SHORT},
        {"direction": "backward_weight", "dtype": "fp16", "layout": "nhwgc", "pipeline": "compv3", **_SHORT}
        | {"two_stage": True},
        {"direction": "forward", "dtype": "bf16", "layout": "ndhwgc", "pipeline": "compv1", **_SMALL}
        | {"vector": [1, 1, 8], "bias": True, "residual": True, "activation": "relu"},
        {"direction": "backward_data", "dtype": "bf16", "layout": "nhwgc", "pipeline": "compv1", **_SMALL}
        | {"vector": [1, 1, 1]},
    ),
    "gfx950": (
        {"direction": "backward_weight", "dtype": "bf16", "layout": "ndhwgc", "pipeline": "compv1", **_LARGE},
        {"direction": "backward_data", "dtype": "bf16", "layout": "nhwgc", "pipeline": "compv3", **_DEEP},
        {"direction": "forward", "dtype": "bf16", "layout": "nhwgc", "pipeline": "compv3", **_DEEP},
        {"direction": "forward", "dtype": "fp16", "layout": "nhwgc", "pipeline": "compv4", **_LARGE}
        | {"specialization": "filter1x1_pad0"},
    ),
}
"""What is compiled: the kernels of `essential` for gfx942 and gfx950, every direction, 2D and 3D, each pipeline."""


@cache
def library(arch: str) -> KernelLibrary:
    """The library of :data:`SPECS` for an architecture."""
    specs = [{"op": "convolution", **spec} for spec in SPECS[arch]]
    selections = select("specs", specs, [arch], load_archs())
    (manifest,) = build_libraries("conv", selections, DEFAULT_TOOLCHAINS, executor(), own_folder() / arch)
    return KernelLibrary.load(manifest.parent)
