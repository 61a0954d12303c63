"""Build the libraries of a ``kernel_library``: one per architecture, each with its manifest."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Iterable, Mapping

from pants.engine.fs import Digest
from pants.engine.rules import Get, MultiGet, collect_rules, rule
from pants.engine.target import Target
from pants.util.logging import LogLevel
from tilewright.pants import engine
from tilewright.pants.target_types import LibraryArchsField, LibraryKernelsField, LibraryNameField
from tilewright.pants.util_rules.actions import Action, ActionOutputs, ActionsRequest
from tilewright.pants.util_rules.codegen import CodegenRequest, CodegenResponse
from tilewright.pants.util_rules.kernels import kernel_of_target
from tilewright.pants.util_rules.toolchains import Toolchains
from tilewright.pants.util_rules.trees import Materials, MaterialsRequest


class LibraryError(Exception):
    """A ``kernel_library`` that cannot be built as it is written."""


@dataclass(frozen=True)
class LibraryRequest:
    """What a library is made of, free of addresses except for messages.

    ``kernels`` are JSON texts ``{"arch", "spec", "origin"}``.
    """

    name: str
    kernels: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class PlannedLibrary:
    """One architecture's part of the plan as JSON text, and its actions grouped so that kernels build side by side."""

    arch: str
    manifest_request: str
    library: str
    reports: tuple[str, ...]
    trees: tuple[str, ...]
    kernels: tuple[ActionsRequest, ...]
    link: ActionsRequest


@dataclass(frozen=True)
class PlannedLibraries:
    """The plan of every architecture."""

    libraries: tuple[PlannedLibrary, ...]


@dataclass(frozen=True)
class BuiltLibrary:
    """``lib<name>.so``, ``manifest.json`` and ``provenance.json`` below ``<arch>/``."""

    arch: str
    digest: Digest


@dataclass(frozen=True)
class BuiltLibraries:
    """The libraries of all architectures."""

    libraries: tuple[BuiltLibrary, ...]


async def library_request(target: Target) -> LibraryRequest:
    """The kernels behind a ``kernel_library`` target. Raises LibraryError if there are none."""
    dependencies = await engine.direct_dependencies(target[LibraryKernelsField])
    kept = target[LibraryArchsField].value
    kernels = [kernel for kernel in map(kernel_of_target, dependencies) if kernel is not None]
    archs = {kernel["arch"] for kernel in kernels}
    for arch in kept or ():
        if arch not in archs:
            raise LibraryError(
                f"{target.address}: the field archs names {arch!r}, for which no kernel is listed; "
                f"allowed: {', '.join(sorted(archs)) or 'none'}"
            )
    texts = sorted(json.dumps(kernel, sort_keys=True) for kernel in kernels if not kept or kernel["arch"] in kept)
    if not texts:
        raise LibraryError(f"{target.address}: dependencies hold no kernel; list gemm_kernel or kernel_set targets")
    name = target[LibraryNameField].value or target.address.target_name
    return LibraryRequest(name.replace("-", "_"), tuple(texts), str(target.address))


async def build(target: Target) -> BuiltLibraries:
    """All libraries of a ``kernel_library`` target."""
    request = await library_request(target)
    planned = await Get(PlannedLibraries, LibraryRequest, request)
    return await Get(BuiltLibraries, PlannedLibraries, planned)


@rule(desc="Plan kernel library", level=LogLevel.DEBUG)
async def plan_library(request: LibraryRequest, toolchains: Toolchains) -> PlannedLibraries:
    body = {
        "stage": "plan",
        "name": request.name,
        "kernels": [json.loads(kernel) for kernel in request.kernels],
        "toolchains": toolchains.to_json(),
    }
    response = await Get(
        CodegenResponse,
        CodegenRequest("plan", json.dumps(body, sort_keys=True), f"Plan {request.origin}", request.origin),
    )
    return PlannedLibraries(tuple(parse_library(library) for library in response.parse()["libraries"]))


def parse_library(library: Mapping[str, Any]) -> PlannedLibrary:
    """Group a library's flat action list: one request per kernel, one for table and link."""
    files = {file["path"]: file["text"] for file in library["files"]}
    actions = [Action.parse(action) for action in library["actions"]]
    producer = {output: action for action in actions for output in action.outputs}
    grouped: set[str] = set()
    kernels = []
    for kernel in library["kernels"]:
        keep = [*kernel["objects"], *([kernel["report"]] if kernel["report"] else [])]
        needed = _closure(keep, producer)
        grouped.update(needed)
        kernels.append(_request([action for action in actions if action.id in needed], files, keep))
    rest = [action for action in actions if action.id not in grouped]
    described = {key: value for key, value in library.items() if key not in ("files", "actions")}
    return PlannedLibrary(
        arch=library["arch"],
        manifest_request=json.dumps(described, sort_keys=True),
        library=library["library"],
        reports=tuple(sorted(library["reports"].values())),
        trees=tuple(sorted({tree for action in actions for tree in action.trees})),
        kernels=tuple(kernels),
        link=_request(rest, files, [library["library"]]),
    )


def _closure(outputs: Iterable[str], producer: Mapping[str, Action]) -> set[str]:
    """Ids of the actions that make ``outputs``, directly or not."""
    needed: set[str] = set()
    wanted = list(outputs)
    while wanted:
        action = producer.get(wanted.pop())
        if action is not None and action.id not in needed:
            needed.add(action.id)
            wanted.extend(action.inputs)
    return needed


def _request(actions: list[Action], files: Mapping[str, str], keep: list[str]) -> ActionsRequest:
    used = sorted({path for action in actions for path in action.inputs if path in files})
    return ActionsRequest(tuple((path, files[path]) for path in used), tuple(actions), tuple(keep))


async def _manifest(planned: PlannedLibrary, objects: Digest, linked: Digest) -> Digest:
    """Manifest and provenance: the generator reads the reports, the engine knows every file's sha256."""
    hashes = {**await engine.fingerprints(objects), **await engine.fingerprints(linked)}
    materials = await Get(Materials, MaterialsRequest(planned.trees))
    body = {
        "stage": "bundle",
        "library": json.loads(planned.manifest_request),
        "sha256": hashes,
        "materials": json.loads(materials.text),
    }
    reports = await engine.subset(objects, planned.reports)
    response = await Get(
        CodegenResponse,
        CodegenRequest(
            "bundle", json.dumps(body, sort_keys=True), f"Describe {planned.library}", planned.library, reports
        ),
    )
    files = response.parse()
    return await engine.create_files((f"{planned.arch}/{name}", text.encode()) for name, text in files.items())


@rule(desc="Build kernel library for an architecture", level=LogLevel.DEBUG)
async def build_library(planned: PlannedLibrary) -> BuiltLibrary:
    kernels = await MultiGet(Get(ActionOutputs, ActionsRequest, kernel) for kernel in planned.kernels)
    objects = await engine.merge(kernel.digest for kernel in kernels)
    link = ActionsRequest(planned.link.files, planned.link.actions, planned.link.keep, objects)
    linked = await Get(ActionOutputs, ActionsRequest, link)
    manifest = await _manifest(planned, objects, linked.digest)
    return BuiltLibrary(planned.arch, await engine.merge([linked.digest, manifest]))


@rule(desc="Build kernel library", level=LogLevel.DEBUG)
async def build_libraries(planned: PlannedLibraries) -> BuiltLibraries:
    return BuiltLibraries(await MultiGet(Get(BuiltLibrary, PlannedLibrary, library) for library in planned.libraries))


def rules() -> list[object]:
    return [*collect_rules()]
