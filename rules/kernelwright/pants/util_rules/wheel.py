"""Wheels: the files of targets, or a kernel library for one architecture, written by the code generator."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Iterable, Mapping, Optional

from kernelwright.pants.compat import concurrently, implicitly, rule
from kernelwright.pants.engine import digests, graph
from kernelwright.pants.engine.exit_codes import BadInput
from kernelwright.pants.targets.kernel_library import LibraryKernelsField
from kernelwright.pants.targets.native_library import NativeSourcesField
from kernelwright.pants.targets.wheels import (
    KernelWheelsPackageField,
    KernelWheelsTarget,
    WheelLicensesField,
    WheelPathsField,
    WheelProjectField,
)
from kernelwright.pants.util_rules import codegen, trees
from kernelwright.pants.util_rules.codegen import CodegenRequest
from kernelwright.pants.util_rules.library import BuiltLibrary, build
from kernelwright.pants.util_rules.trees import MaterialsRequest, Tree, TreeRequest
from pants.backend.python.target_types import PythonSourceField
from pants.core.target_types import FileSourceField, ResourceSourceField
from pants.engine.addresses import Address
from pants.engine.fs import EMPTY_DIGEST, Digest
from pants.engine.rules import collect_rules
from pants.engine.target import Dependencies, Target
from pants.util.logging import LogLevel

# The trees that native libraries are compiled with, see the generator's stage "native".
_NATIVE_TREES = ("dispatcher", "zig")
_PACKAGED = (PythonSourceField, ResourceSourceField, FileSourceField)
_OUTPUT = "out.whl"


class WheelError(BadInput):
    """A wheel target from which no wheel can be made."""


@dataclass(frozen=True)
class WheelRequest:
    """The files of a wheel: ``contents`` at their paths in it, ``licenses`` relative to its ``licenses`` folder.

    ``trees`` and ``sources`` were compiled into it; the provenance statement names them. ``compiled_with`` are trees of
    a kernel library whose licences the wheel states.
    """

    project: str
    contents: Digest
    licenses: Digest
    origin: str
    arch: Optional[str] = None
    trees: tuple[str, ...] = ()
    sources: Digest = EMPTY_DIGEST
    compiled_with: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuiltWheel:
    """The wheel under its own name."""

    name: str
    sha256: str
    digest: Digest


@rule(desc="Build wheel", level=LogLevel.DEBUG)
async def build_wheel(request: WheelRequest) -> BuiltWheel:
    contents = await digests.snapshot(request.contents)
    licenses = await digests.snapshot(request.licenses)
    materials = await trees.name_materials(MaterialsRequest(request.trees), **implicitly())
    body = {
        "stage": "wheel",
        "project": request.project,
        "files": {path: f"__files/{path}" for path in contents.files},
        "licenses": {path: f"__licenses/{path}" for path in licenses.files},
        "materials": [*json.loads(materials.text), {"files": await digests.fingerprints(request.sources)}],
        "output": _OUTPUT,
    }
    if request.arch:
        body["arch"] = request.arch
        body["trees"] = list(request.compiled_with)
    inputs = await digests.merge(
        [
            await digests.workspace_files([request.project], f"{request.origin}'s project field"),
            await digests.add_prefix(request.contents, "__files"),
            await digests.add_prefix(request.licenses, "__licenses"),
        ]
    )
    described = f"Write the wheel {request.origin}" + (f" for {request.arch}" if request.arch else "")
    asked = CodegenRequest("wheel", json.dumps(body, sort_keys=True), described, request.origin, inputs, (_OUTPUT,))
    response = await codegen.run_codegen(asked, **implicitly())
    made = response.parse()
    digest = await digests.rename(response.outputs, {_OUTPUT: made["wheel"]})
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
    files = await digests.workspace_files(list(target[WheelLicensesField].value or ()), f"{target.address}'s licenses")
    paths = await digests.snapshot(files)
    return await digests.rename(files, {path: path.rpartition("/")[2] for path in paths.files})


def moved(path: str, moves: Mapping[str, str]) -> Optional[str]:
    """Return the path in the wheel of a file that ``moves`` moves, None for other files; the longest folder wins."""
    for folder in sorted(moves, key=len, reverse=True):
        if path.startswith(f"{folder}/"):
            return f"{moves[folder]}{path[len(folder) :]}"
    return None


async def _python_request(target: Target) -> WheelRequest:
    targets = await graph.transitive_dependencies(target.address)
    files = await graph.sources(targets, _PACKAGED, codegen=True)
    moves: Mapping[str, str] = target[WheelPathsField].value or {}
    paths = (await digests.snapshot(files)).files
    if not paths:
        raise WheelError(f"{target.address}: dependencies hold no file; list python_sources, resources or files")
    renamed = {path: to for path in paths for to in [moved(path, moves)] if to}
    stay = await digests.subset(files, [path for path in paths if path not in renamed])
    native = [other for other in targets if other.has_field(NativeSourcesField)]
    return WheelRequest(
        project=target[WheelProjectField].file_path or "",
        contents=await digests.merge([await graph.strip_source_roots(stay), await digests.rename(files, renamed)]),
        licenses=await _licenses(target),
        origin=str(target.address),
        trees=_NATIVE_TREES if native else (),
        sources=await graph.sources(native, (NativeSourcesField,), codegen=False),
    )


async def _flattened(tree: Tree) -> Digest:
    """Return the single licence text of a tree, named after the wheel that it comes from."""
    paths = (await digests.snapshot(tree.digest)).files
    return await digests.rename(tree.digest, {path: _license_name(tree.name) for path in paths})


def _license_name(tree: str) -> str:
    return f"LICENSE.{tree[: -len('_license')]}.txt"


async def _kernel_request(target: Target, library: BuiltLibrary) -> WheelRequest:
    names = trees.license_trees(library.trees)
    prepared = await concurrently(trees.prepare_tree(TreeRequest(name), **implicitly()) for name in names)
    texts = [await _flattened(tree) for tree in prepared]
    package = target[KernelWheelsPackageField].value or ""
    note = f'"""Kernels for {library.arch}: data of kernelwright.dispatch, see manifest.json."""\n'
    contents = await digests.merge(
        [library.digest, await digests.create([(f"{library.arch}/__init__.py", note.encode())])]
    )
    return WheelRequest(
        project=target[WheelProjectField].file_path or "",
        contents=await digests.add_prefix(contents, package.replace(".", "/")),
        licenses=await digests.merge([await _licenses(target), *texts]),
        origin=str(target.address),
        arch=library.arch,
        trees=names,
        compiled_with=library.trees,
    )


def _only(libraries: Iterable[Target], origin: str) -> Target:
    candidates = list(libraries)
    if len(candidates) != 1:
        raise WheelError(f"{origin}: dependencies name {len(candidates)} kernel libraries; name exactly one")
    return candidates[0]


@rule(desc="Build wheels", level=LogLevel.DEBUG)
async def build_wheels(request: WheelsRequest) -> BuiltWheels:
    target = await graph.target_at(request.address, "a wheel")
    if not isinstance(target, KernelWheelsTarget):
        return BuiltWheels((await build_wheel(await _python_request(target), **implicitly()),))
    named = await graph.direct_dependencies(target[Dependencies])
    library = _only((other for other in named if other.has_field(LibraryKernelsField)), str(target.address))
    built = await build(library)
    requests = [await _kernel_request(target, one) for one in built.libraries]
    return BuiltWheels(await concurrently(build_wheel(one, **implicitly()) for one in requests))


def rules() -> list[object]:
    return [*collect_rules()]
