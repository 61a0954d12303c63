"""Builds the libraries of a ``kernel_library``: one per architecture, each with its manifest."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, Collection, Iterable, Mapping, Optional

from kernelwright.pants.compat import concurrently, implicitly, rule
from kernelwright.pants.engine import digests, graph, progress
from kernelwright.pants.engine.exit_codes import BadInput
from kernelwright.pants.engine.progress import Part
from kernelwright.pants.targets.kernel_library import (
    LibraryArchsField,
    LibraryKernelsField,
    LibraryModelsField,
    LibraryNameField,
)
from kernelwright.pants.util_rules import actions, codegen, trees
from kernelwright.pants.util_rules.actions import Action, ActionOutputs, ActionsRequest
from kernelwright.pants.util_rules.codegen import CodegenRequest
from kernelwright.pants.util_rules.kernels import kernel_of_target
from kernelwright.pants.util_rules.toolchains import Toolchains
from kernelwright.pants.util_rules.trees import MaterialsRequest
from pants.engine.addresses import Address
from pants.engine.fs import EMPTY_DIGEST, Digest
from pants.engine.rules import collect_rules
from pants.engine.target import Target
from pants.option.global_options import GlobalOptions
from pants.util.frozendict import FrozenDict
from pants.util.logging import LogLevel

_LANES_PER_CORE = 4


class LibraryError(BadInput):
    """A ``kernel_library`` target that cannot be built."""


@dataclass(frozen=True)
class LibraryRequest:
    """The kernels of a library, without addresses except for messages.

    ``kernels`` are JSON texts ``{"arch", "spec", "origin"}``, with any stated ``limits``; ``models`` are paths in the
    workspace.
    """

    name: str
    kernels: tuple[str, ...]
    origin: str
    models: tuple[str, ...] = ()

    @property
    def archs(self) -> set[str]:
        """The architectures of the kernels."""
        return {json.loads(kernel)["arch"] for kernel in self.kernels}

    def of(self, archs: Collection[str], device: str) -> LibraryRequest:
        """Return the kernels of those of ``archs`` that a device runs. Raises LibraryError if there are none."""
        kept = tuple(kernel for kernel in self.kernels if json.loads(kernel)["arch"] in archs)
        if not kept:
            raise LibraryError(f"{self.origin} has no kernel for {device}; it has {', '.join(sorted(self.archs))}")
        return replace(self, kernels=kept)


@dataclass(frozen=True)
class PlannedGroup:
    """Kernels that build in parallel, and their names; in a large library, ``link`` combines their objects into one.

    ``library`` is the library's name for people.
    """

    kernels: tuple[ActionsRequest, ...]
    link: Optional[ActionsRequest]
    library: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class BuiltGroup:
    """The outputs of the kernels, the objects that the library links, and the known build seconds of each kernel."""

    files: Digest
    linked: Digest
    seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class PlannedLibrary:
    """One architecture's part of the plan as JSON text, and its actions, grouped for kernels to build in parallel.

    ``reports`` are the files that the manifest is made of: reports of compilers, and counts.
    """

    arch: str
    manifest_request: str
    library: str
    reports: tuple[str, ...]
    trees: tuple[str, ...]
    groups: tuple[PlannedGroup, ...]
    link: ActionsRequest
    models: tuple[tuple[str, str], ...] = ()  # model files in it, and their sha256

    @property
    def title(self) -> str:
        """The library's name for people."""
        return _title(self.library, self.arch)


@dataclass(frozen=True)
class PlannedLibraries:
    """The plans of all architectures."""

    libraries: tuple[PlannedLibrary, ...]


@dataclass(frozen=True)
class _Lane:
    """Kernels that build one after another.

    A waiting process costs the daemon about 0.18 MB, and the time to start a process grows with the daemon: ten
    thousand must not wait at once.
    """

    kernels: tuple[ActionsRequest, ...]
    library: str


@dataclass(frozen=True)
class _BuiltLane:
    kernels: tuple[ActionOutputs, ...]


@dataclass(frozen=True)
class BuiltLibrary:
    """``lib<name>.so``, ``manifest.json`` and ``provenance.json`` below ``<arch>/``; measured seconds of kernels.

    ``trees`` are the trees that its commands saw.
    """

    arch: str
    digest: Digest
    trees: tuple[str, ...] = ()
    seconds: tuple[tuple[str, float], ...] = field(default=(), compare=False)


@dataclass(frozen=True)
class BuiltLibraries:
    """The libraries of all architectures."""

    libraries: tuple[BuiltLibrary, ...]


async def library_request(target: Target) -> LibraryRequest:
    """Return the kernels behind a ``kernel_library`` target. Raises LibraryError if there are none."""
    dependencies = await graph.direct_dependencies(target[LibraryKernelsField])
    kept = target[LibraryArchsField].value
    kernels = [_kernel(dependency, target.address) for dependency in dependencies]
    archs = {kernel["arch"] for kernel in kernels}
    for arch in kept or ():
        if arch not in archs:
            raise LibraryError(
                f"{target.address}: the field archs names {arch!r}, for which no kernel is listed; "
                f"allowed: {', '.join(sorted(archs)) or 'none'}"
            )
    # A kernel of two sets, such as the essential and the release set, is in the library once.
    unique = {json.dumps({**kernel, "origin": None}, sort_keys=True): kernel for kernel in reversed(kernels)}
    wanted = [kernel for kernel in unique.values() if not kept or kernel["arch"] in kept]
    texts = sorted(json.dumps(kernel, sort_keys=True) for kernel in wanted)
    if not texts:
        raise LibraryError(
            f"{target.address}: dependencies hold no kernel; list gemm_kernel, kernel_set or similar targets"
        )
    name = target[LibraryNameField].value or target.address.target_name
    folder = target.address.spec_path
    models = tuple(f"{folder}/{model}".lstrip("/") for model in target[LibraryModelsField].value or ())
    return LibraryRequest(name.replace("-", "_"), tuple(texts), str(target.address), models)


def _kernel(dependency: Target, library: Address) -> dict[str, Any]:
    kernel = kernel_of_target(dependency)
    if kernel is None:
        raise LibraryError(
            f"{library}: dependencies name {dependency.address}, a {dependency.alias}; "
            "allowed: gemm_kernel, kernel_set and similar targets"
        )
    return kernel


async def build(target: Target) -> BuiltLibraries:
    """Build all libraries of a ``kernel_library`` target."""
    return await build_requested(await library_request(target))


async def build_requested(request: LibraryRequest) -> BuiltLibraries:
    """Build all libraries of a request."""
    planned = await plan_library(request, **implicitly())
    built = await build_libraries(planned, **implicitly())
    for library in built.libraries:
        await digests.read(library.digest)  # raises DamagedStore before a damaged library is packaged
    return built


@rule(desc="Plan kernel library", level=LogLevel.DEBUG)
async def plan_library(request: LibraryRequest, toolchains: Toolchains) -> PlannedLibraries:
    body = {
        "stage": "plan",
        "name": request.name,
        "kernels": [json.loads(kernel) for kernel in request.kernels],
        "toolchains": toolchains.to_json(),
    }
    models = EMPTY_DIGEST
    if request.models:
        body["models"] = list(request.models)
        models = await digests.workspace_files(request.models, f"{request.origin}'s field models")
    asked = CodegenRequest("plan", json.dumps(body, sort_keys=True), f"Plan {request.origin}", request.origin, models)
    response = await codegen.run_codegen(asked, **implicitly())
    files = await digests.fingerprints(models)
    return PlannedLibraries(tuple(parse_library(library, files) for library in response.parse()["libraries"]))


def parse_library(library: Mapping[str, Any], models: Mapping[str, str] = FrozenDict()) -> PlannedLibrary:
    """Divide a flat list of actions into requests: one for each kernel, each group of a large library, and the rest.

    ``models`` are model files with their sha256, some of which are in the library.
    """
    files = {file["path"]: file["text"] for file in library["files"]}
    steps = {action["id"]: Action.parse(action) for action in library["actions"]}
    place = {id: number for number, id in enumerate(steps)}
    producer = {output: action for action in steps.values() for output in action.outputs}
    title = _title(library["library"], library["arch"])
    kernels = {}
    for kernel in library["kernels"]:
        keep = [*kernel["objects"], *(path for path in (kernel["report"], kernel["counts"]) if path)]
        needed = sorted(_closure(keep, producer), key=place.__getitem__)
        kernels[kernel["name"]] = _request([steps[id] for id in needed], files, keep, Part(title, kernel["name"]))
    links = {
        group["output"]: _request([producer[group["output"]]], files, [group["output"]], Part(title))
        for group in library["groups"]
    }
    done = {action.id for request in (*kernels.values(), *links.values()) for action in request.actions}
    groups = [
        PlannedGroup(
            tuple(kernels[name] for name in group["kernels"]), links[group["output"]], title, tuple(group["kernels"])
        )
        for group in library["groups"]
    ]
    inside = {model["name"] for model in library.get("models", ())}
    described = {key: value for key, value in library.items() if key not in ("files", "actions", "groups")}
    return PlannedLibrary(
        arch=library["arch"],
        manifest_request=json.dumps(described, sort_keys=True),
        library=library["library"],
        reports=tuple(
            sorted(path for kernel in library["kernels"] for path in (kernel["report"], kernel["counts"]) if path)
        ),
        trees=tuple(sorted({tree for action in steps.values() for tree in action.trees})),
        groups=tuple(groups) or (PlannedGroup(tuple(kernels.values()), None, title, tuple(kernels)),),
        link=_request(
            [action for id, action in steps.items() if id not in done], files, [library["library"]], Part(title)
        ),
        models=tuple((path, sha256) for path, sha256 in sorted(models.items()) if PurePosixPath(path).stem in inside),
    )


def _title(library: str, arch: str) -> str:
    return f"{PurePosixPath(library).name} for {arch}"


def _closure(outputs: Iterable[str], producer: Mapping[str, Action]) -> set[str]:
    """Return the ids of the actions that make ``outputs``, directly or not."""
    needed: set[str] = set()
    wanted = list(outputs)
    while wanted:
        action = producer.get(wanted.pop())
        if action is not None and action.id not in needed:
            needed.add(action.id)
            wanted.extend(action.inputs)
    return needed


def _request(steps: list[Action], files: Mapping[str, str], keep: list[str], part: Part) -> ActionsRequest:
    used = sorted({path for action in steps for path in action.inputs if path in files})
    return ActionsRequest(tuple((path, files[path]) for path in used), tuple(steps), tuple(keep), part=part)


async def _manifest(planned: PlannedLibrary, objects: Digest, linked: Digest) -> Digest:
    """Write manifest and provenance: the generator reads the reports, and Pants knows the sha256 of every file."""
    hashes = {**await digests.fingerprints(objects), **await digests.fingerprints(linked)}
    materials = await trees.name_materials(MaterialsRequest(planned.trees), **implicitly())
    body = {
        "stage": "bundle",
        "library": json.loads(planned.manifest_request),
        "sha256": hashes,
        "materials": [*json.loads(materials.text), *([{"files": dict(planned.models)}] if planned.models else [])],
    }
    reports = await digests.subset(objects, planned.reports)
    asked = CodegenRequest(
        "bundle", json.dumps(body, sort_keys=True), f"Describe {planned.library}", planned.library, reports
    )
    response = await codegen.run_codegen(asked, **implicitly())
    files = response.parse()
    return await digests.create((f"{planned.arch}/{name}", text.encode()) for name, text in files.items())


@rule(desc="Build kernels one after the other", level=LogLevel.DEBUG)
async def build_lane(lane: _Lane) -> _BuiltLane:
    built = []
    names = [kernel.part.kernel for kernel in lane.kernels if kernel.part and kernel.part.kernel]
    with progress.of(lane.library).at_work(*names) as done:
        for kernel in lane.kernels:
            built.append(await actions.run_actions(kernel, **implicitly()))
            if kernel.part and kernel.part.kernel:
                done(kernel.part.kernel)
    return _BuiltLane(tuple(built))


@rule(desc="Build kernels", level=LogLevel.DEBUG)
async def build_group(group: PlannedGroup, options: GlobalOptions) -> BuiltGroup:
    at_once = _LANES_PER_CORE * options.process_execution_local_parallelism
    if options.remote_execution:
        at_once += options.process_execution_remote_parallelism
    starts = range(min(at_once, len(group.kernels)))
    with progress.of(group.library).at_work():
        lanes = await concurrently(
            build_lane(_Lane(group.kernels[start::at_once], group.library), **implicitly()) for start in starts
        )
        kernels = [lanes[n % at_once].kernels[n // at_once] for n in range(len(group.kernels))]
        files = await digests.merge(kernel.digest for kernel in kernels)
        seconds = tuple((name, one.seconds) for name, one in zip(group.names, kernels) if one.seconds is not None)
        if group.link is None:
            return BuiltGroup(files, files, seconds)
        linked = await actions.run_actions(replace(group.link, inputs=files), **implicitly())
        return BuiltGroup(files, linked.digest, seconds)


@rule(desc="Build kernel library for an architecture", level=LogLevel.DEBUG)
async def build_library(planned: PlannedLibrary) -> BuiltLibrary:
    counted = progress.of(planned.title)
    counted.kernels = sum(len(group.kernels) for group in planned.groups)
    with counted.at_work():
        groups = await concurrently(build_group(group, **implicitly()) for group in planned.groups)
        inputs = await digests.merge(group.linked for group in groups)
        linked = await actions.run_actions(replace(planned.link, inputs=inputs), **implicitly())
        objects = await digests.merge(group.files for group in groups)
        manifest = await _manifest(planned, objects, linked.digest)
        seconds = tuple(pair for group in groups for pair in group.seconds)
        return BuiltLibrary(planned.arch, await digests.merge([linked.digest, manifest]), planned.trees, seconds)


@rule(desc="Build kernel library", level=LogLevel.DEBUG)
async def build_libraries(planned: PlannedLibraries) -> BuiltLibraries:
    return BuiltLibraries(await concurrently(build_library(library, **implicitly()) for library in planned.libraries))


def rules() -> list[object]:
    return [*collect_rules()]
