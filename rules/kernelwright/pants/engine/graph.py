"""Targets, their dependencies and their files."""

from __future__ import annotations

from typing import Iterable, Type

from kernelwright.pants.engine.digests import snapshot
from pants.core.util_rules.source_files import SourceFiles, SourceFilesRequest
from pants.core.util_rules.stripped_source_files import StrippedSourceFiles
from pants.engine.addresses import Address, Addresses, UnparsedAddressInputs
from pants.engine.fs import Digest
from pants.engine.rules import Get
from pants.engine.target import (
    AllUnexpandedTargets,
    Dependencies,
    DependenciesRequest,
    SourcesField,
    SpecialCasedDependencies,
    Target,
    Targets,
    TransitiveTargets,
    TransitiveTargetsRequest,
    WrappedTarget,
    WrappedTargetRequest,
)


async def target_at(address: Address, origin: str) -> Target:
    """The target at an address; ``origin`` says who asks, for messages."""
    wrapped = await Get(WrappedTarget, WrappedTargetRequest(address, description_of_origin=origin))
    return wrapped.target


async def all_targets() -> tuple[Target, ...]:
    """Every target of the workspace, generators not replaced."""
    return tuple(await Get(AllUnexpandedTargets))


async def direct_dependencies(dependencies: Dependencies) -> tuple[Target, ...]:
    """The targets that a ``dependencies`` field names, generators replaced by what they generate."""
    return tuple(await Get(Targets, DependenciesRequest(dependencies)))


async def transitive_dependencies(address: Address) -> tuple[Target, ...]:
    """The targets that a target depends on, directly or not."""
    closure = await Get(TransitiveTargets, TransitiveTargetsRequest([address]))
    return tuple(closure.dependencies)


async def named_addresses(field: SpecialCasedDependencies) -> tuple[Address, ...]:
    """The targets that a field names which Pants does not read as dependencies."""
    return tuple(await Get(Addresses, UnparsedAddressInputs, field.to_unparsed_address_inputs()))


async def parse_address(text: str, owner: Address, field: str) -> Address:
    """The target that the text field ``field`` of ``owner`` names."""
    inputs = UnparsedAddressInputs([text], owning_address=owner, description_of_origin=f"{owner}'s field {field}")
    (address,) = await Get(Addresses, UnparsedAddressInputs, inputs)
    return address


async def sources(targets: Iterable[Target], kinds: tuple[Type[SourcesField], ...], codegen: bool) -> Digest:
    """The targets' files at their paths in the workspace; with ``codegen`` generated files too."""
    request = SourceFilesRequest(
        [target.get(SourcesField) for target in targets], for_sources_types=kinds, enable_codegen=codegen
    )
    found = await Get(SourceFiles, SourceFilesRequest, request)
    return found.snapshot.digest


async def strip_source_roots(digest: Digest) -> Digest:
    """The same files at the paths from which Python imports them."""
    stripped = await Get(StrippedSourceFiles, SourceFiles(await snapshot(digest), ()))
    return stripped.snapshot.digest
