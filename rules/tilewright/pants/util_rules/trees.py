"""Read-only folders that compile actions see: toolchains out of pinned wheels, and our own headers."""

from __future__ import annotations

from dataclasses import dataclass

from pants.engine.fs import Digest
from pants.engine.rules import collect_rules, rule
from pants.util.logging import LogLevel
from tilewright.pants import engine

_TOOLCHAINS = "3rdparty/toolchains"
_INCLUDE = "dispatcher_cpp/include/tilewright"


@dataclass(frozen=True)
class WheelTree:
    """Folders of pinned wheels. Keys of ``wheels`` are wheel file names; only the named parts are stored."""

    requirements: str
    wheels: tuple[tuple[str, tuple[str, ...]], ...]


# What is left out of zig: headers and sources of other operating systems (15,000 files).
_ZIG_PARTS = (
    "zig",
    "LICENSE",
    *(
        f"lib/{part}"
        for part in (
            *("c", "c.zig", "compiler", "compiler_rt", "compiler_rt.zig", "fuzzer.zig", "include", "init"),
            *("libc/glibc", "libc/musl/include", "libcxx", "libcxxabi", "libtsan", "libunwind", "std"),
            *("ubsan_rt.zig", "zig.h"),
            *(f"libc/include/{target}" for target in ("any-linux-any", "generic-glibc", "generic-musl")),
            *(f"libc/include/{target}" for target in ("x86-linux-any", "x86-linux-gnu")),
            "libc/include/x86_64-linux-musl",
        )
    ),
)

_MANYLINUX_2014 = "manylinux2014_x86_64.manylinux_2_17_x86_64"

WHEEL_TREES = {
    "zig": WheelTree(
        f"{_TOOLCHAINS}/zig.txt",
        (
            (
                "ziglang-0.17.0-py3-none-manylinux_2_12_x86_64.manylinux2010_x86_64.musllinux_1_1_x86_64.whl",
                tuple(f"ziglang/{part}" for part in _ZIG_PARTS),
            ),
        ),
    ),
    "clang": WheelTree(
        f"{_TOOLCHAINS}/clang.txt",
        (
            (
                "clang_tidy-22.1.8-py2.py3-none-manylinux_2_27_x86_64.manylinux_2_28_x86_64.whl",
                ("clang_tidy/data/lib/clang/22/include",),
            ),
        ),
    ),
    "ck_tile": WheelTree(
        f"{_TOOLCHAINS}/ck_tile.txt",
        (
            (
                "amd_aiter-0.1.7.post2.dev18-py3-none-any.whl",
                ("aiter_meta/3rdparty/composable_kernel/include/ck_tile",),
            ),
        ),
    ),
    "cutlass": WheelTree(
        f"{_TOOLCHAINS}/cutlass.txt",
        (
            (
                "nvidia_cutlass-4.2.0.0-py3-none-any.whl",
                tuple(f"cutlass_library/source/{part}" for part in ("include", "tools/util/include")),
            ),
        ),
    ),
    "cuda": WheelTree(
        f"{_TOOLCHAINS}/cuda.txt",
        (
            (f"nvidia_cuda_nvcc-13.0.88-py3-none-{_MANYLINUX_2014}.whl", ("nvidia/cu13",)),
            ("nvidia_nvvm-13.0.88-py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64.whl", ("nvidia/cu13",)),
            (f"nvidia_cuda_crt-13.0.88-py3-none-{_MANYLINUX_2014}.whl", ("nvidia/cu13",)),
            (f"nvidia_cuda_runtime-13.0.96-py3-none-{_MANYLINUX_2014}.whl", ("nvidia/cu13",)),
            (f"nvidia_cuda_cccl-13.0.85-py3-none-{_MANYLINUX_2014}.whl", ("nvidia/cu13",)),
        ),
    ),
}

# One tree per backend, so that a change of one backend's header rebuilds no kernel of another.
SOURCE_TREES = {
    "abi": (f"{_INCLUDE}/abi.h",),
    "cpu": (f"{_INCLUDE}/cpu/**",),
    "hip": (f"{_INCLUDE}/hip/**",),
    "cuda_src": (f"{_INCLUDE}/cuda/**",),
    "headers": (f"{_INCLUDE}/*.h", f"{_INCLUDE}/dispatcher/**"),
}


@dataclass(frozen=True)
class TreeRequest:
    """A tree by name, as actions name it."""

    name: str


@dataclass(frozen=True)
class Tree:
    """The folder that an action finds at ``__<name>``."""

    name: str
    digest: Digest

    @property
    def mount(self) -> str:
        """Where the tree stands in a sandbox."""
        return f"__{self.name}"


@rule(desc="Prepare toolchain or headers", level=LogLevel.DEBUG)
async def prepare_tree(request: TreeRequest) -> Tree:
    if request.name in SOURCE_TREES:
        files = await engine.workspace_files(SOURCE_TREES[request.name], f"the tree {request.name}")
        return Tree(request.name, await engine.remove_prefix(files, "dispatcher_cpp"))
    if request.name not in WHEEL_TREES:
        known = ", ".join(sorted({*WHEEL_TREES, *SOURCE_TREES}))
        raise ValueError(f"unknown tree {request.name!r} in a compile plan; known trees: {known}")
    tree = WHEEL_TREES[request.name]
    files = await engine.wheel_files(tree.requirements, tree.wheels, f"toolchain {request.name}")
    return Tree(request.name, files)


def rules() -> list[object]:
    return [*collect_rules()]
