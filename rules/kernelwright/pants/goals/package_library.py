"""``package``: a kernel library, written to ``dist/<path of the target>/<arch>/``."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.pants.engine import digests, graph
from kernelwright.pants.targets.kernel_library import LibraryKernelsField, LibraryNameField, LibraryResourceField
from kernelwright.pants.util_rules.library import build
from pants.core.goals.package import BuiltPackage, BuiltPackageArtifact, OutputPathField, PackageFieldSet
from pants.core.target_types import ResourceSourceField
from pants.engine.rules import collect_rules, rule
from pants.engine.target import (
    GeneratedSources,
    GenerateSourcesRequest,
    InvalidFieldException,
)
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


@dataclass(frozen=True)
class KernelLibraryFieldSet(PackageFieldSet):
    """Marks ``kernel_library`` targets for the ``package`` goal."""

    required_fields = (LibraryKernelsField, LibraryNameField)

    output_path: OutputPathField


def check_output_path(field_set: KernelLibraryFieldSet) -> None:
    """Raise InvalidFieldException for a path outside ``dist`` or with unprintable characters."""
    path = field_set.output_path.value
    if path is not None and (path.startswith("/") or ".." in path.split("/") or not path.isprintable()):
        raise InvalidFieldException(
            f"{field_set.address}: the field output_path is {path!r}; allowed: a printable relative path without '..'"
        )


@rule(desc="Package kernel library", level=LogLevel.DEBUG)
async def package_kernel_library(field_set: KernelLibraryFieldSet) -> BuiltPackage:
    check_output_path(field_set)
    built = await build(await graph.target_at(field_set.address, "the package goal"))
    merged = await digests.merge(library.digest for library in built.libraries)
    folder = field_set.output_path.value or f"{field_set.address.spec_path}/{field_set.address.target_name}"
    digest = await digests.add_prefix(merged, folder)
    artifacts = await digests.snapshot(digest)
    return BuiltPackage(digest, tuple(BuiltPackageArtifact(path) for path in artifacts.files))


class KernelLibraryAsResource(GenerateSourcesRequest):
    """A library as a resource of a Python target that depends on it."""

    input = LibraryResourceField
    output = ResourceSourceField


@rule(desc="Build kernel library as a resource", level=LogLevel.DEBUG)
async def kernel_library_as_resource(request: KernelLibraryAsResource) -> GeneratedSources:
    target = request.protocol_target
    built = await build(target)
    merged = await digests.merge(library.digest for library in built.libraries)
    folder = f"{target.address.spec_path}/{target.address.target_name}".lstrip("/")
    return GeneratedSources(await digests.snapshot(await digests.add_prefix(merged, folder)))


def rules() -> list[object]:
    return [
        *collect_rules(),
        UnionRule(PackageFieldSet, KernelLibraryFieldSet),
        UnionRule(GenerateSourcesRequest, KernelLibraryAsResource),
    ]
