"""``package``: a kernel library, written to ``dist/<path of the target>/<arch>/``."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from string import Template
from typing import Optional

from kernelwright.pants.compat import LibraryOutputPathField, rule
from kernelwright.pants.engine import digests, graph
from kernelwright.pants.engine.dist_paths import checked_dist_path
from kernelwright.pants.targets.kernel_library import LibraryKernelsField, LibraryNameField, LibraryResourceField
from kernelwright.pants.util_rules.library import LibraryError, build, library_request
from pants.core.goals.package import BuiltPackage, BuiltPackageArtifact, PackageFieldSet
from pants.core.target_types import ResourceSourceField
from pants.engine.rules import collect_rules
from pants.engine.target import GeneratedSources, GenerateSourcesRequest, Target
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


@dataclass(frozen=True)
class KernelLibraryFieldSet(PackageFieldSet):
    """Marks ``kernel_library`` targets for the ``package`` goal."""

    required_fields = (LibraryKernelsField, LibraryNameField)

    output_path: LibraryOutputPathField


def output_folder(library: Target) -> str:
    """Return the folder of a library below ``dist``; OutsideDist for a folder that leaves it."""
    path = _named_folder(library)
    if path is not None:
        return checked_dist_path(path, f"{library.address}: the field output_path")
    return checked_dist_path(own_folder(library), f"{library.address}: the folder that is named after the target")


def _named_folder(library: Target) -> Optional[str]:
    """``output_path`` with its templates filled in, as Pants 2.27 does for its own targets; None without the field."""
    path = library[LibraryOutputPathField].value
    if path is None or "$" not in path:
        return path
    address = library.address
    values = {
        "spec_path_normalized": address.spec_path.replace("/", ".") or ".",
        "target_name_normalized": address.target_name + address.parameters_repr.replace(".", "_"),
        "file_suffix": "",
    }
    return posixpath.normpath(Template(path).safe_substitute(values))


def own_folder(library: Target) -> str:
    """Return ``<path of the target>/<its name>``."""
    return f"{library.address.spec_path}/{library.address.target_name}".lstrip("/")


async def _check_others(library: Target, folder: str, archs: set[str]) -> None:
    """Raise LibraryError if another target of the workspace writes the same library of the same architecture.

    Only a library that names its folder is checked: folders named after targets differ, and the check expands every
    kernel set of the workspace.
    """
    if library[LibraryOutputPathField].value is None:
        return
    for other in await graph.all_targets():
        if not other.has_field(LibraryKernelsField) or other.address == library.address:
            continue
        if (_named_folder(other) or own_folder(other)) != folder:
            continue
        both = archs & (await library_request(other)).archs
        if both:
            raise LibraryError(
                f"{library.address} and {other.address} both write {folder}/{min(both)}; give one of them another "
                "output_path or other archs"
            )


@rule(desc="Package kernel library", level=LogLevel.DEBUG)
async def package_kernel_library(field_set: KernelLibraryFieldSet) -> BuiltPackage:
    target = await graph.target_at(field_set.address, "the package goal")
    folder = output_folder(target)
    await _check_others(target, folder, (await library_request(target)).archs)
    built = await build(target)
    merged = await digests.merge(library.digest for library in built.libraries)
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
    folder = checked_dist_path(own_folder(target), f"{target.address}: the folder that is named after the target")
    built = await build(target)
    merged = await digests.merge(library.digest for library in built.libraries)
    return GeneratedSources(await digests.snapshot(await digests.add_prefix(merged, folder)))


def rules() -> list[object]:
    return [
        *collect_rules(),
        UnionRule(PackageFieldSet, KernelLibraryFieldSet),
        UnionRule(GenerateSourcesRequest, KernelLibraryAsResource),
    ]
