"""The read-only folders that actions mount: their names, and what each of them holds."""

from __future__ import annotations

from collections.abc import Mapping

TREES: Mapping[str, str] = {
    "zig": "the ziglang wheel: compiler, linker, libc and libc++ headers",
    "clang": "clang's own headers out of the clang-tidy wheel: clang_tidy/data/lib/clang/22/include",
    "ck_tile": "CK Tile's headers out of the amd-aiter wheel: aiter_meta/3rdparty/composable_kernel/include",
    "cutlass": "CUTLASS's headers out of the nvidia-cutlass wheel: cutlass_library/source",
    "cuda": "CUDA's headers, ptxas, nvcc and static runtime out of the nvidia wheels: nvidia/cu13",
    "abi": "include/tilewright/*.h: the C ABI",
    "cpu": "include/tilewright/cpu: kernels and launchers for x86-64",
    "hip": "include/tilewright/hip: kernels and launchers for AMD GPUs",
    "cuda_src": "include/tilewright/cuda: kernels and launchers for NVIDIA GPUs",
}


def mount(tree: str) -> str:
    """Where a tree is found, relative to the working directory of an action."""
    return f"__{tree}"


def cache_mount(cache: str) -> str:
    """Where an append-only cache folder is found, relative to the working directory of an action."""
    return f"__cache_{cache}"
