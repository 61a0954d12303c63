"""The read-only folders that actions mount: their names, and what each of them holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Tree:
    """``parts`` are the folders and files below the root that actions may see; ``*`` stands for any part of a name.

    ``origin`` says where the root is: ``headers`` of this project, or the unpacked ``wheel`` of a toolchain.
    ``read_by_editors`` are patterns of the files that an editor needs, where these are fewer: it runs no compiler.
    """

    about: str
    parts: tuple[str, ...]
    origin: Literal["headers", "wheel"] = "wheel"
    read_by_editors: tuple[str, ...] = ()

    @property
    def globs(self) -> tuple[str, ...]:
        """Patterns of all files of the tree, relative to its root; ``**`` stands for any folders."""
        return tuple(part if part.endswith(".h") else f"{part}/**" for part in self.parts)

    @property
    def headers(self) -> tuple[str, ...]:
        """Patterns of the files that an editor reads."""
        return self.read_by_editors or self.globs


TREES: Mapping[str, Tree] = {
    "zig": Tree(
        "the ziglang wheel: compiler, linker, libc and libc++ headers",
        ("ziglang",),
        read_by_editors=("ziglang/lib/libcxx/include/**", "ziglang/lib/libc/include/**"),
    ),
    "clang": Tree("clang's own headers, from the clang-tidy wheel", ("clang_tidy/data/lib/clang/22/include",)),
    "ck_tile": Tree("CK Tile's headers, from the amd-aiter wheel", ("aiter_meta/3rdparty/composable_kernel/include",)),
    "cutlass": Tree(
        "CUTLASS's headers, from the nvidia-cutlass wheel",
        (
            "cutlass_library/source/include",
            "cutlass_library/source/tools/util/include",
            "cutlass_library/source/examples/88_hopper_fmha",
        ),
    ),
    "cuda": Tree(
        "CUDA's headers, ptxas, nvcc and static runtime, from the nvidia wheels",
        ("nvidia/cu13",),
        read_by_editors=("nvidia/cu13/**/include/**", "nvidia/cu13/include/**", "nvidia/cu13/nvvm/libdevice/**"),
    ),
    "abi": Tree("the C ABI", ("include/kernelwright/abi.h", "include/kernelwright/variant.h"), "headers"),
    "headers": Tree(
        "the C ABI and the dispatcher's own headers",
        ("include/kernelwright/*.h", "include/kernelwright/dispatcher"),
        "headers",
    ),
    "cpu": Tree("kernels and launchers for x86-64", ("include/kernelwright/cpu",), "headers"),
    "hip": Tree("kernels and launchers for AMD GPUs", ("include/kernelwright/hip",), "headers"),
    "cuda_src": Tree("kernels and launchers for NVIDIA GPUs", ("include/kernelwright/cuda",), "headers"),
}


def mount(tree: str) -> str:
    """Where a tree is found, relative to the working directory of an action."""
    return f"__{tree}"


def cache_mount(cache: str) -> str:
    """Where an append-only cache folder is found, relative to the working directory of an action."""
    return f"__cache_{cache}"
