"""Builds shared libraries of plain C and C++: the native dispatcher, test fixtures, compiled selection models."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import PurePosixPath

from kernelwright.pants.compat import implicitly, rule
from kernelwright.pants.engine import digests
from kernelwright.pants.targets.kernel_heuristic import HeuristicModelField, HeuristicOutputField
from kernelwright.pants.targets.native_library import (
    NativeCopiesField,
    NativeLinkField,
    NativeOutputField,
    NativeSourcesField,
)
from kernelwright.pants.util_rules import actions, codegen
from kernelwright.pants.util_rules.actions import Action, ActionsRequest
from kernelwright.pants.util_rules.codegen import CodegenRequest
from kernelwright.pants.util_rules.toolchains import Toolchains
from pants.core.target_types import ResourceSourceField
from pants.engine.fs import Digest
from pants.engine.rules import collect_rules
from pants.engine.target import GeneratedSources, GenerateSourcesRequest
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


@dataclass(frozen=True)
class NativeLibraryRequest:
    """The sources of a shared library, and ``output``, its path in the workspace."""

    sources: Digest
    output: str
    link: tuple[str, ...]
    origin: str


@dataclass(frozen=True)
class BuiltNativeLibrary:
    """The library at its path."""

    digest: Digest


@rule(desc="Build native library", level=LogLevel.DEBUG)
async def build_native_library(request: NativeLibraryRequest, toolchains: Toolchains) -> BuiltNativeLibrary:
    sources = await digests.snapshot(request.sources)
    body = {
        "stage": "native",
        "output": request.output,
        "sources": list(sources.files),
        "link": list(request.link),
        "toolchains": toolchains.to_json(),
    }
    asked = CodegenRequest("plan", json.dumps(body, sort_keys=True), f"Plan {request.origin}", request.origin)
    response = await codegen.run_codegen(asked, **implicitly())
    steps = tuple(Action.parse(action) for action in response.parse()["actions"])
    built = await actions.run_actions(ActionsRequest((), steps, (request.output,), request.sources), **implicitly())
    return BuiltNativeLibrary(built.digest)


class NativeLibraryAsResource(GenerateSourcesRequest):
    """A native library as a resource of a Python target that depends on it."""

    input = NativeSourcesField
    output = ResourceSourceField


@rule(desc="Build native library as a resource", level=LogLevel.DEBUG)
async def native_library_as_resource(request: NativeLibraryAsResource) -> GeneratedSources:
    target = request.protocol_target
    asked = NativeLibraryRequest(
        sources=request.protocol_sources.digest,
        output=target[NativeOutputField].value or "",
        link=tuple(target[NativeLinkField].value or ()),
        origin=str(target.address),
    )
    built = await build_native_library(asked, **implicitly())
    folder = PurePosixPath(asked.output).parent
    names = [asked.output, *(str(folder / name) for name in target[NativeCopiesField].value or ())]
    each = [await digests.rename(built.digest, {asked.output: name}) for name in names]
    return GeneratedSources(await digests.snapshot(await digests.merge(each)))


class HeuristicAsResource(GenerateSourcesRequest):
    """A compiled model as a resource of a Python target that depends on it."""

    input = HeuristicModelField
    output = ResourceSourceField


@rule(desc="Compile selection model", level=LogLevel.DEBUG)
async def heuristic_as_resource(request: HeuristicAsResource, toolchains: Toolchains) -> GeneratedSources:
    target = request.protocol_target
    output, origin = target[HeuristicOutputField].value or "", str(target.address)
    body = {
        "stage": "heuristic",
        "model": target[HeuristicModelField].file_path,
        "output": output,
        "toolchains": toolchains.to_json(),
    }
    inputs = request.protocol_sources.digest
    asked = CodegenRequest("plan", json.dumps(body, sort_keys=True), f"Plan {origin}", origin, inputs)
    response = (await codegen.run_codegen(asked, **implicitly())).parse()
    sources = await digests.create([(file["path"], file["text"].encode()) for file in response["files"]])
    steps = tuple(Action.parse(action) for action in response["actions"])
    built = await actions.run_actions(ActionsRequest((), steps, (output,), sources), **implicitly())
    return GeneratedSources(await digests.snapshot(built.digest))


def rules() -> list[object]:
    requests = (NativeLibraryAsResource, HeuristicAsResource)
    return [*collect_rules(), *(UnionRule(GenerateSourcesRequest, one) for one in requests)]
