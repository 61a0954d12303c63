"""Targets, their dependencies and their files."""

from __future__ import annotations

from typing import Iterable, Type

from kernelwright.pants.compat import calls
from kernelwright.pants.engine.digests import snapshot
from pants.core.util_rules.source_files import SourceFiles, SourceFilesRequest
from pants.engine.addresses import Address, UnparsedAddressInputs
from pants.engine.fs import Digest
from pants.engine.target import (
    Dependencies,
    DependenciesRequest,
    SourcesField,
    SpecialCasedDependencies,
    Target,
    TransitiveTargetsRequest,
    WrappedTargetRequest,
)


async def target_at(address: Address, origin: str) -> Target:
    """Return the target at an address; ``origin`` says who asks, for messages."""
    wrapped = await calls.target(WrappedTargetRequest(address, description_of_origin=origin))
    return wrapped.target


async def all_targets() -> tuple[Target, ...]:
    """Return every target of the workspace, with generators in place of what they generate."""
    return tuple(await calls.all_targets())


async def direct_dependencies(dependencies: Dependencies) -> tuple[Target, ...]:
    """Return the targets that a ``dependencies`` field names, with generators replaced by what they generate."""
    return tuple(await calls.dependencies(DependenciesRequest(dependencies)))


async def transitive_dependencies(address: Address) -> tuple[Target, ...]:
    """Return the targets that a target depends on, directly or not."""
    closure = await calls.transitive_targets(TransitiveTargetsRequest([address]))
    return tuple(closure.dependencies)


async def named_addresses(field: SpecialCasedDependencies) -> tuple[Address, ...]:
    """Return the targets that a field names but that Pants does not read as dependencies."""
    return tuple(await calls.addresses(field.to_unparsed_address_inputs()))


async def parse_address(text: str, owner: Address, field: str) -> Address:
    """Return the target that ``text`` in the field ``field`` of ``owner`` names."""
    inputs = UnparsedAddressInputs([text], owning_address=owner, description_of_origin=f"{owner}'s field {field}")
    (address,) = await calls.addresses(inputs)
    return address


async def option_address(text: str, option: str) -> Address:
    """Return the target that an option names."""
    inputs = UnparsedAddressInputs([text], owning_address=None, description_of_origin=option)
    (address,) = await calls.addresses(inputs)
    return address


async def sources(targets: Iterable[Target], kinds: tuple[Type[SourcesField], ...], codegen: bool) -> Digest:
    """Return the targets' files at their paths in the workspace; with ``codegen``, generated files too."""
    request = SourceFilesRequest(
        [target.get(SourcesField) for target in targets], for_sources_types=kinds, enable_codegen=codegen
    )
    files = await calls.source_files(request)
    return files.snapshot.digest


async def strip_source_roots(digest: Digest) -> Digest:
    """Return the same files at the paths from which Python imports them."""
    stripped = await calls.stripped_source_files(SourceFiles(await snapshot(digest), ()))
    return stripped.snapshot.digest
