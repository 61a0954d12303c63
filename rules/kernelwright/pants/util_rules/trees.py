"""Read-only folders that compile actions see: toolchains from pinned wheels, and this project's own headers.

Our headers are those of the workspace if ``[kernelwright-codegen].include`` names them, else the kernelwright wheel's.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Iterable, Mapping, Optional, Sequence

from kernelwright.pants.compat import implicitly, rule
from kernelwright.pants.engine import digests, portable
from kernelwright.pants.engine.wheels import PinnedWheels
from kernelwright.pants.generator_data import generator_data
from kernelwright.pants.subsystems.codegen import CodegenSubsystem
from kernelwright.pants.util_rules import codegen, pins
from kernelwright.pants.util_rules.codegen import CodegenRequest
from kernelwright.pants.util_rules.pins import PinsRequest
from pants.engine.fs import Digest
from pants.engine.rules import collect_rules
from pants.util.logging import LogLevel


@dataclass(frozen=True)
class WheelTree:
    """Folders of pinned wheels. Keys of ``wheels`` are wheel file names; only the named parts are stored."""

    pins: str
    wheels: tuple[tuple[str, tuple[str, ...]], ...]


# Without headers and sources of other operating systems (15,000 files).
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


def _wheel(distribution: str, tags: str) -> str:
    return f"{_stem(distribution)}-{tags}.whl"


def _stem(distribution: str) -> str:
    """Return ``amd_aiter-0.1.7``, as wheels and folders in them are named."""
    versions = {name: version for wheels in generator_data()["wheels"].values() for name, version in wheels.items()}
    return f"{distribution.replace('-', '_')}-{versions[distribution]}"


_ANY = "py3-none-any"
_MANYLINUX_2014 = "py3-none-manylinux2014_x86_64.manylinux_2_17_x86_64"
_AITER, _CUTLASS, _FLASHINFER = (_wheel(name, _ANY) for name in ("amd-aiter", "nvidia-cutlass", "flashinfer-python"))
_CUDA_RUNTIME = _wheel("nvidia-cuda-runtime", _MANYLINUX_2014)
_ZIG_TAGS = "py3-none-manylinux_2_12_x86_64.manylinux2010_x86_64.musllinux_1_1_x86_64"
_CLANG_TAGS = "py2.py3-none-manylinux_2_27_x86_64.manylinux_2_28_x86_64"
_NVVM_TAGS = "py3-none-manylinux2010_x86_64.manylinux_2_12_x86_64"
_CK_TILE = "aiter_meta/3rdparty/composable_kernel"
_CUDA = ("nvidia/cu13",)

WHEEL_TREES = {
    "zig": WheelTree("zig", ((_wheel("ziglang", _ZIG_TAGS), tuple(f"ziglang/{part}" for part in _ZIG_PARTS)),)),
    "clang": WheelTree("clang", ((_wheel("clang-tidy", _CLANG_TAGS), ("clang_tidy/data/lib/clang/22/include",)),)),
    "ck_tile": WheelTree("ck_tile", ((_AITER, (f"{_CK_TILE}/include/ck_tile",)),)),
    "cutlass": WheelTree(
        "cutlass",
        ((_CUTLASS, tuple(f"cutlass_library/source/{part}" for part in ("include", "tools/util/include"))),),
    ),
    "flashinfer": WheelTree("flashinfer", ((_FLASHINFER, ("flashinfer/data/include/flashinfer",)),)),
    "cuda": WheelTree(
        "cuda",
        (
            (_wheel("nvidia-cuda-nvcc", _MANYLINUX_2014), _CUDA),
            (_wheel("nvidia-nvvm", _NVVM_TAGS), _CUDA),
            (_wheel("nvidia-cuda-crt", _MANYLINUX_2014), _CUDA),
            (_CUDA_RUNTIME, _CUDA),
            (_wheel("nvidia-cuda-cccl", _MANYLINUX_2014), _CUDA),
        ),
    ),
}


def _license(distribution: str, name: str) -> tuple[str, ...]:
    return (f"{_stem(distribution)}.dist-info/licenses/{name}",)


# Licence texts of code that is compiled into libraries; compilers do not see these trees.
LICENSE_TREES = {
    "ck_tile_license": WheelTree("ck_tile", ((_AITER, (f"{_CK_TILE}/LICENSE",)),)),
    "cutlass_license": WheelTree("cutlass", ((_CUTLASS, _license("nvidia-cutlass", "LICENSE.txt")),)),
    "flashinfer_license": WheelTree("flashinfer", ((_FLASHINFER, _license("flashinfer-python", "LICENSE")),)),
    "cuda_license": WheelTree("cuda", ((_CUDA_RUNTIME, _license("nvidia-cuda-runtime", "License.txt")),)),
}

SOURCE_TREES: Mapping[str, tuple[str, ...]] = {
    name: tuple(tree["globs"]) for name, tree in generator_data()["trees"].items() if tree["origin"] == "headers"
}
"""Globs of this project's own headers by tree; a changed header rebuilds what mounts its tree."""

MADE_TREES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    name: (tree["of"], tuple(tree["reads"]))
    for name, tree in generator_data()["trees"].items()
    if tree["origin"] == "made"
}
"""Trees that the generator makes from another tree: that tree's name, and the files of it that are read."""


def source_trees(backends: Sequence[str]) -> tuple[str, ...]:
    """Return the trees of this project's own files with which kernels and libraries of some backends are compiled.

    Empty without a backend.
    """
    known = generator_data()["trees"]
    return tuple(name for name in SOURCE_TREES if known[name]["backend"] in (None, *backends)) if backends else ()


def license_trees(names: Iterable[str]) -> tuple[str, ...]:
    """The trees with the licence texts of wheels whose code is in libraries compiled with the trees ``names``."""
    known = generator_data()["trees"]
    return tuple(f"{name}_license" for name in sorted(names) if name in WHEEL_TREES and known[name]["licensed"])


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
        """The tree's path in a sandbox."""
        return f"__{self.name}"


async def _source_tree(name: str, include: Optional[str]) -> Tree:
    globs = SOURCE_TREES[name]
    if include:
        root = include.rpartition("include")[0].rstrip("/")
        files = await digests.workspace_files([f"{root}/{glob}" for glob in globs], f"the tree {name}")
        return Tree(name, await digests.remove_prefix(files, root))
    request = CodegenRequest("plan", '{"stage": "headers"}', "Read headers of kernelwright's wheel", f"the tree {name}")
    response = await codegen.run_codegen(request, **implicitly())
    headers = await digests.create((path, text.encode()) for path, text in response.parse()["files"].items())
    return Tree(name, await digests.subset(headers, globs))


async def _wheel_tree(name: str, tree: WheelTree) -> Tree:
    pinned = await pins.read_pins(PinsRequest(tree.pins), **implicitly())
    files = await portable.wheel_files(PinnedWheels(pinned.path, pinned.digest, f"toolchain {name}"), tree.wheels)
    return Tree(name, files)


async def _made_tree(name: str) -> Tree:
    source, reads = MADE_TREES[name]
    tree = await _wheel_tree(source, WHEEL_TREES[source])
    inputs = await digests.add_prefix(await digests.subset(tree.digest, reads), tree.mount)
    body = json.dumps({"stage": "tree", "name": name})
    request = CodegenRequest("plan", body, f"Rewrite headers of the tree {source}", f"the tree {name}", inputs)
    response = await codegen.run_codegen(request, **implicitly())
    files = response.parse()["files"].items()
    return Tree(name, await digests.create((path, text.encode()) for path, text in files))


@rule(desc="Prepare toolchain or headers", level=LogLevel.DEBUG)
async def prepare_tree(request: TreeRequest, options: CodegenSubsystem) -> Tree:
    if request.name in SOURCE_TREES:
        return await _source_tree(request.name, options.include)
    if request.name in MADE_TREES:
        return await _made_tree(request.name)
    trees = {**WHEEL_TREES, **LICENSE_TREES}
    if request.name not in trees:
        known = ", ".join(sorted({*trees, *SOURCE_TREES, *MADE_TREES}))
        raise ValueError(f"unknown tree {request.name!r} in a compile plan; known trees: {known}")
    return await _wheel_tree(request.name, trees[request.name])


@dataclass(frozen=True)
class MaterialsRequest:
    """The trees that an artefact was built with."""

    trees: tuple[str, ...]


@dataclass(frozen=True)
class Materials:
    """The materials of trees as JSON text for the generator's requests: requirements or files."""

    text: str


@rule(desc="Name toolchains and headers", level=LogLevel.DEBUG)
async def name_materials(request: MaterialsRequest) -> Materials:
    materials: list[object] = []
    sources = {MADE_TREES[name][0] if name in MADE_TREES else name for name in request.trees}
    for name in sorted(sources):
        if name in SOURCE_TREES:
            tree = await prepare_tree(TreeRequest(name), **implicitly())
            materials.append({"files": await digests.fingerprints(tree.digest)})
        else:
            asked = PinsRequest({**WHEEL_TREES, **LICENSE_TREES}[name].pins)
            pinned = await pins.read_pins(asked, **implicitly())
            materials.append({"requirements": pinned.text})
    return Materials(json.dumps(materials, sort_keys=True))


def rules() -> list[object]:
    return [*collect_rules()]
