"""The read-only folders that actions mount: their names, and what each of them holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Tree:
    """``parts`` are the folders (or ``*.h`` patterns of files) below the root that actions may see."""

    about: str
    parts: tuple[str, ...]


TREES: Mapping[str, Tree] = {
    "zig": Tree("the ziglang wheel: compiler, linker, libc and libc++ headers", ("ziglang",)),
    "clang": Tree("clang's own headers, out of the clang-tidy wheel", ("clang_tidy/data/lib/clang/22/include",)),
    "ck_tile": Tree(
        "CK Tile's headers, out of the amd-aiter wheel", ("aiter_meta/3rdparty/composable_kernel/include",)
    ),
    "cutlass": Tree(
        "CUTLASS's headers, out of the nvidia-cutlass wheel",
        (
            "cutlass_library/source/include",
            "cutlass_library/source/tools/util/include",
            "cutlass_library/source/examples/88_hopper_fmha",
        ),
    ),
    "cuda": Tree("CUDA's headers, ptxas, nvcc and static runtime, out of the nvidia wheels", ("nvidia/cu13",)),
    "abi": Tree("the C ABI", ("include/kernelwright/*.h",)),
    "headers": Tree(
        "the C ABI and the dispatcher's own headers", ("include/kernelwright/*.h", "include/kernelwright/dispatcher")
    ),
    "cpu": Tree("kernels and launchers for x86-64", ("include/kernelwright/cpu",)),
    "hip": Tree("kernels and launchers for AMD GPUs", ("include/kernelwright/hip",)),
    "cuda_src": Tree("kernels and launchers for NVIDIA GPUs", ("include/kernelwright/cuda",)),
}


def mount(tree: str) -> str:
    """Where a tree is found, relative to the working directory of an action."""
    return f"__{tree}"


def cache_mount(cache: str) -> str:
    """Where an append-only cache folder is found, relative to the working directory of an action."""
    return f"__cache_{cache}"
