"""Wheels: the files of targets, or a kernel library for one architecture, written by the code generator."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Iterable, Mapping, Optional

from kernelwright.pants import engine
from kernelwright.pants.target_types import (
    KernelWheelsPackageField,
    KernelWheelsTarget,
    LibraryKernelsField,
    NativeSourcesField,
    WheelLicensesField,
    WheelPathsField,
    WheelProjectField,
)
from kernelwright.pants.util_rules.codegen import CodegenRequest, CodegenResponse
from kernelwright.pants.util_rules.library import BuiltLibrary, build
from kernelwright.pants.util_rules.trees import Materials, MaterialsRequest, Tree, TreeRequest
from pants.backend.python.target_types import PythonSourceField
from pants.core.target_types import FileSourceField, ResourceSourceField
from pants.engine.addresses import Address
from pants.engine.fs import EMPTY_DIGEST, Digest
from pants.engine.rules import Get, MultiGet, collect_rules, rule
from pants.engine.target import Dependencies, Target, WrappedTarget, WrappedTargetRequest
from pants.util.logging import LogLevel

# Whose code is compiled into libraries of a backend: the trees with the licence texts.
_HEADER_LICENSES = {"ck_tile": ("ck_tile_license",), "cutlass": ("cutlass_license", "cuda_license"), "cpu": ()}
# What native libraries are compiled with, see the generator's plan of stage "native".
_NATIVE_TREES = ("dispatcher", "zig")
_PACKAGED = (PythonSourceField, ResourceSourceField, FileSourceField)
_OUTPUT = "out.whl"


class WheelError(Exception):
    """A wheel target that describes no wheel."""


@dataclass(frozen=True)
class WheelRequest:
    """``contents`` and ``licenses`` are laid out as in the wheel and below its ``licenses`` folder.

    ``trees`` and ``sources`` are what was compiled into it, for its statement.
    """

    project: str
    contents: Digest
    licenses: Digest
    origin: str
    arch: Optional[str] = None
    trees: tuple[str, ...] = ()
    sources: Digest = EMPTY_DIGEST


@dataclass(frozen=True)
class BuiltWheel:
    """The wheel under its own name."""

    name: str
    sha256: str
    digest: Digest


@rule(desc="Build wheel", level=LogLevel.DEBUG)
async def build_wheel(request: WheelRequest) -> BuiltWheel:
    contents = await engine.snapshot(request.contents)
    licenses = await engine.snapshot(request.licenses)
    materials = await Get(Materials, MaterialsRequest(request.trees))
    body = {
        "stage": "wheel",
        "project": request.project,
        "files": {path: f"__files/{path}" for path in contents.files},
        "licenses": {path: f"__licenses/{path}" for path in licenses.files},
        "materials": [*json.loads(materials.text), {"files": await engine.fingerprints(request.sources)}],
        "output": _OUTPUT,
    }
    if request.arch:
        body["arch"] = request.arch
    inputs = await engine.merge(
        [
            await engine.workspace_files([request.project], f"{request.origin}'s project field"),
            await engine.add_prefix(request.contents, "__files"),
            await engine.add_prefix(request.licenses, "__licenses"),
        ]
    )
    described = f"Write the wheel {request.origin}" + (f" for {request.arch}" if request.arch else "")
    response = await Get(
        CodegenResponse,
        CodegenRequest("wheel", json.dumps(body, sort_keys=True), described, request.origin, inputs, (_OUTPUT,)),
    )
    made = response.parse()
    digest = await engine.rename(response.outputs, {_OUTPUT: made["wheel"]})
    return BuiltWheel(made["wheel"], made["sha256"], digest)


@dataclass(frozen=True)
class WheelsRequest:
    """A ``python_wheel`` or ``kernel_wheels`` target."""

    address: Address


@dataclass(frozen=True)
class BuiltWheels:
    """One wheel, or one for each architecture."""

    wheels: tuple[BuiltWheel, ...]


async def _licenses(target: Target) -> Digest:
    files = await engine.workspace_files(list(target[WheelLicensesField].value or ()), f"{target.address}'s licenses")
    paths = await engine.snapshot(files)
    return await engine.rename(files, {path: path.rpartition("/")[2] for path in paths.files})


def moved(path: str, moves: Mapping[str, str]) -> Optional[str]:
    """Where a file of the workspace stands in the wheel if ``moves`` says so: the longest folder counts."""
    for folder in sorted(moves, key=len, reverse=True):
        if path.startswith(f"{folder}/"):
            return f"{moves[folder]}{path[len(folder) :]}"
    return None


async def _python_request(target: Target) -> WheelRequest:
    targets = await engine.transitive_dependencies(target.address)
    files = await engine.sources(targets, _PACKAGED, codegen=True)
    moves: Mapping[str, str] = target[WheelPathsField].value or {}
    paths = (await engine.snapshot(files)).files
    if not paths:
        raise WheelError(f"{target.address}: dependencies hold no file; list python_sources, resources or files")
    renamed = {path: to for path in paths for to in [moved(path, moves)] if to}
    stay = await engine.subset(files, [path for path in paths if path not in renamed])
    native = [other for other in targets if other.has_field(NativeSourcesField)]
    return WheelRequest(
        project=target[WheelProjectField].file_path or "",
        contents=await engine.merge([await engine.strip_source_roots(stay), await engine.rename(files, renamed)]),
        licenses=await _licenses(target),
        origin=str(target.address),
        trees=_NATIVE_TREES if native else (),
        sources=await engine.sources(native, (NativeSourcesField,), codegen=False),
    )


async def _flattened(tree: Tree) -> Digest:
    """A tree's one licence text, named after the wheel that it comes from."""
    paths = (await engine.snapshot(tree.digest)).files
    return await engine.rename(tree.digest, {path: _license_name(tree.name) for path in paths})


def _license_name(tree: str) -> str:
    return f"LICENSE.{tree[: -len('_license')]}.txt"


async def _kernel_request(target: Target, library: BuiltLibrary) -> WheelRequest:
    manifest = json.loads((await engine.read(await engine.subset(library.digest, ["*/manifest.json"]))).popitem()[1])
    trees = _HEADER_LICENSES[manifest["backend"]]
    texts = [await _flattened(tree) for tree in await MultiGet(Get(Tree, TreeRequest(tree)) for tree in trees)]
    package = target[KernelWheelsPackageField].value or ""
    note = f'"""Kernels for {library.arch}: data of kernelwright.dispatch, see manifest.json."""\n'
    contents = await engine.merge(
        [library.digest, await engine.create_files([(f"{library.arch}/__init__.py", note.encode())])]
    )
    return WheelRequest(
        project=target[WheelProjectField].file_path or "",
        contents=await engine.add_prefix(contents, package.replace(".", "/")),
        licenses=await engine.merge([await _licenses(target), *texts]),
        origin=str(target.address),
        arch=library.arch,
        trees=trees,
    )


def _only(libraries: Iterable[Target], origin: str) -> Target:
    found = list(libraries)
    if len(found) != 1:
        raise WheelError(f"{origin}: dependencies name {len(found)} kernel libraries; name exactly one")
    return found[0]


@rule(desc="Build wheels", level=LogLevel.DEBUG)
async def build_wheels(request: WheelsRequest) -> BuiltWheels:
    wrapped = await Get(WrappedTarget, WrappedTargetRequest(request.address, description_of_origin="a wheel"))
    target = wrapped.target
    if not isinstance(target, KernelWheelsTarget):
        return BuiltWheels((await Get(BuiltWheel, WheelRequest, await _python_request(target)),))
    named = await engine.direct_dependencies(target[Dependencies])
    library = _only((other for other in named if other.has_field(LibraryKernelsField)), str(target.address))
    built = await build(library)
    requests = [await _kernel_request(target, one) for one in built.libraries]
    return BuiltWheels(await MultiGet(Get(BuiltWheel, WheelRequest, one) for one in requests))


def rules() -> list[object]:
    return [*collect_rules()]
