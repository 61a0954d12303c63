"""A small library of AMD kernels of norms for each architecture, compiled as a build compiles them.

Needs the toolchain wheels: KERNELWRIGHT_TREES names a JSON file ``{tree: folder}``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from compiling import executor, own_folder
from kernelwright.arch import load
from kernelwright.codegen.backends.registry import DEFAULT_TOOLCHAINS
from kernelwright.codegen.building.build import build_libraries
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.dispatch import KernelLibrary

ARCHS = ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201")
DTYPES = ("fp32", "fp16", "bf16")


def tiles(arch: str) -> tuple[dict[str, int], ...]:
    """Several rows of a wave, rows of part of a wave, and a row of several waves."""
    wave = load(arch).wave_size
    return (
        {"threads_per_row": wave, "rows_per_block": 2, "unroll": 2},
        {"threads_per_row": 16, "rows_per_block": wave // 8, "unroll": 1},
        {"threads_per_row": 4 * wave, "unroll": 1},
    )


def results(arch: str) -> tuple[str, ...]:
    """The types of quantised results that an architecture has."""
    return ("int8", "fp8") if load(arch).flops_per_clock_per_cu.get("fp8") else ("int8",)


def specs(arch: str, kind: str) -> Iterator[dict[str, Any]]:
    """Every direction and pair of types of a kind, each shared among threads in another way."""
    shapes, number = tiles(arch), 0 if kind == "rms" else 1
    for dtype in DTYPES:
        for result in (dtype, *results(arch)):
            yield {"op": "norm", "kind": kind, "dtype": dtype, "dtype_y": result, **shapes[number % 3]}
            number += 1
        number += 1
        yield {"op": "norm", "kind": kind, "direction": "backward", "dtype": dtype, **shapes[number % 3]}


@cache
def library(arch: str, kind: str) -> KernelLibrary:
    """The library of :func:`specs` for an architecture."""
    selections = select("specs", [*specs(arch, kind)], [arch], load_archs())
    (manifest,) = build_libraries("norm", selections, DEFAULT_TOOLCHAINS, executor(), own_folder() / f"{arch}_{kind}")
    return KernelLibrary.load(manifest.parent)
