"""The read-only folders that actions mount: their names, and what each of them holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Tree:
    """``parts`` are the folders and files below the root that actions may see; ``*`` stands for any part of a name.

    A tree that is ``made_of`` another one, given by name, has no folder of its own: builds make its files out of the
    other's (:mod:`kernelwright.codegen.lean`).
    """

    about: str
    parts: tuple[str, ...]
    made_of: str | None = None

    @property
    def globs(self) -> tuple[str, ...]:
        """Patterns of all files of the tree, relative to its root; ``**`` stands for any folders."""
        return tuple(part if part.endswith(".h") else f"{part}/**" for part in self.parts)

    @property
    def own(self) -> bool:
        """Whether the tree holds the project's own headers and sources, not a toolchain's."""
        return all(part.startswith("include/kernelwright/") for part in self.parts)


def _launchers(name: str, *backends: str) -> dict[str, Tree]:
    """What libraries link once and kernels never include, in trees of its own: an edit of it recompiles no kernel."""
    folders = {backend: backend.removesuffix("_src") for backend in backends}
    return {
        f"{backend}_{name}_launcher": Tree(
            f"launchers of {folder} libraries: {name}", (f"include/kernelwright/{folder}/launchers/{name}",)
        )
        for backend, folder in folders.items()
    }


TREES: Mapping[str, Tree] = {
    "zig": Tree("the ziglang wheel: compiler, linker, libc and libc++ headers", ("ziglang",)),
    "clang": Tree("clang's own headers, from the clang-tidy wheel", ("clang_tidy/data/lib/clang/22/include",)),
    "ck_tile": Tree("CK Tile's headers, from the amd-aiter wheel", ("aiter_meta/3rdparty/composable_kernel/include",)),
    "ck_tile_lean": Tree("those of CK Tile's headers that are rewritten to compile faster", ("include",), "ck_tile"),
    "cutlass": Tree(
        "CUTLASS's headers, from the nvidia-cutlass wheel",
        ("cutlass_library/source/include", "cutlass_library/source/tools/util/include"),
    ),
    "cutlass_lean": Tree("those of CUTLASS's headers that are rewritten to compile faster", ("include",), "cutlass"),
    "flashinfer": Tree(
        "FlashInfer's headers, from the flashinfer-python wheel", ("flashinfer/data/include/flashinfer",)
    ),
    "flashinfer_edited": Tree(
        "those of FlashInfer's headers that clang compiles only after an edit", ("include",), "flashinfer"
    ),
    "cuda": Tree("CUDA's headers, ptxas, nvcc and static runtime, from the nvidia wheels", ("nvidia/cu13",)),
    "abi": Tree(
        "the C ABI that all operations share",
        tuple(f"include/kernelwright/{name}.h" for name in ("abi", "checks", "epilogue")),
    ),
    "gemm": Tree("the C ABI of GEMM", ("include/kernelwright/gemm.h", "include/kernelwright/gemm")),
    "convolution": Tree(
        "the C ABI of convolution", ("include/kernelwright/convolution.h", "include/kernelwright/convolution")
    ),
    "attention": Tree("the C ABI of attention", ("include/kernelwright/attention.h", "include/kernelwright/attention")),
    "dispatcher": Tree(
        "the C ABI of all operations and the dispatcher's own headers",
        (
            "include/kernelwright/*.h",
            "include/kernelwright/gemm",
            "include/kernelwright/convolution",
            "include/kernelwright/attention",
            "include/kernelwright/dispatcher",
        ),
    ),
    "cpu_common": Tree("what kernels for x86-64 share", ("include/kernelwright/cpu/common",)),
    "cpu_gemm": Tree("GEMM kernels for x86-64", ("include/kernelwright/cpu/gemm",)),
    "cpu_convolution": Tree("convolution kernels for x86-64", ("include/kernelwright/cpu/convolution",)),
    "cpu_attention": Tree("attention kernels for x86-64", ("include/kernelwright/cpu/attention",)),
    "hip_common": Tree("what kernels for AMD GPUs share", ("include/kernelwright/hip/common",)),
    "hip_convolution": Tree("convolution kernels for AMD GPUs", ("include/kernelwright/hip/convolution",)),
    "hip_gemm": Tree("GEMM kernels for AMD GPUs", ("include/kernelwright/hip/gemm",)),
    "hip_attention": Tree("attention kernels for AMD GPUs", ("include/kernelwright/hip/attention",)),
    "cuda_src_common": Tree("what kernels for NVIDIA GPUs share", ("include/kernelwright/cuda/common",)),
    "cuda_src_gemm": Tree("GEMM kernels for NVIDIA GPUs", ("include/kernelwright/cuda/gemm",)),
    "cuda_src_convolution": Tree("convolution kernels for NVIDIA GPUs", ("include/kernelwright/cuda/convolution",)),
    "cuda_src_attention": Tree("attention kernels for NVIDIA GPUs", ("include/kernelwright/cuda/attention",)),
    **_launchers("common", "cpu", "hip", "cuda_src"),
    **_launchers("gemm", "cpu", "hip", "cuda_src"),
    **_launchers("convolution", "cpu", "hip", "cuda_src"),
    **_launchers("attention", "cpu", "hip", "cuda_src"),
}

_registered: dict[str, Tree] = {}


def register_tree(name: str, tree: Tree) -> None:
    """Add a tree of headers of an operation from outside this package for as long as this process lives.

    ValueError if another tree has its name.
    """
    if name in TREES or _registered.setdefault(name, tree) != tree:
        raise ValueError(f"a tree named {name!r} exists already; choose another name")


def find_tree(name: str) -> Tree | None:
    """The tree called ``name``, or None."""
    return TREES.get(name) or _registered.get(name)


def mount(tree: str) -> str:
    """Where a tree is found, relative to the working directory of an action."""
    return f"__{tree}"


def tree_of(path: str) -> str:
    """The tree that a path such as ``__abi/include/kernelwright/abi.h`` lies in. ValueError for a path in none."""
    top = path.partition("/")[0]
    if not top.startswith("__"):
        raise ValueError(f"{path!r} lies in no tree; write it as __<tree>/<path in the tree>")
    return top.removeprefix("__")


def cache_mount(cache: str) -> str:
    """Where an append-only cache folder is found, relative to the working directory of an action."""
    return f"__cache_{cache}"
