"""Calls of Pants' own rules, each with one request."""

from __future__ import annotations

import sys

assert sys.version_info >= (3, 11), "for Pants 2.27 and newer"


from kernelwright.pants.compat.pants_2_27.environments import environment, is_remote
from kernelwright.pants.compat.pants_2_27.repositories import python_repositories
from pants.backend.python.util_rules.pex_cli import PexCliProcess, setup_pex_cli_process
from pants.backend.python.util_rules.pex_requirements import (
    LoadedLockfile,
    LoadedLockfileRequest,
    Lockfile,
    Resolve,
    get_lockfile_for_resolve,
)
from pants.backend.python.util_rules.pex_requirements import load_lockfile as load
from pants.core.util_rules.source_files import determine_source_files
from pants.core.util_rules.stripped_source_files import strip_source_roots
from pants.engine.addresses import Addresses, UnparsedAddressInputs
from pants.engine.environment import EnvironmentName
from pants.engine.internals import graph
from pants.engine.intrinsics import (
    add_prefix,
    create_digest,
    digest_subset_to_digest,
    digest_to_snapshot,
    execute_process,
    get_digest_contents,
    get_digest_entries,
    merge_digests,
    path_globs_to_digest,
    remove_prefix,
    run_interactive_process,
)
from pants.engine.process import FallibleProcessResult, InteractiveProcess, InteractiveProcessResult, Process
from pants.engine.rules import implicitly
from pants.engine.target import (
    AllUnexpandedTargets,
    DependenciesRequest,
    Targets,
    TransitiveTargets,
    TransitiveTargetsRequest,
    WrappedTarget,
    WrappedTargetRequest,
)

__all__ = [
    "add_prefix",
    "addresses",
    "all_targets",
    "create_digest",
    "dependencies",
    "digest_contents",
    "digest_entries",
    "digest_subset",
    "environment",
    "execute",
    "execute_in",
    "is_remote",
    "load_lockfile",
    "lockfile_of_resolve",
    "merge_digests",
    "path_globs",
    "pex_cli_process",
    "python_repositories",
    "remove_prefix",
    "run_interactively",
    "snapshot",
    "source_files",
    "stripped_source_files",
    "target",
    "transitive_targets",
]

digest_contents = get_digest_contents
digest_entries = get_digest_entries
digest_subset = digest_subset_to_digest
path_globs = path_globs_to_digest
snapshot = digest_to_snapshot

source_files = determine_source_files
stripped_source_files = strip_source_roots


async def execute(process: Process) -> FallibleProcessResult:
    return await execute_process(process, **implicitly())


async def run_interactively(process: InteractiveProcess) -> InteractiveProcessResult:
    return await run_interactive_process(process)


async def execute_in(process: Process, environment: EnvironmentName) -> FallibleProcessResult:
    return await execute_process(**implicitly({process: Process, environment: EnvironmentName}))


async def addresses(request: UnparsedAddressInputs) -> Addresses:
    return await graph.resolve_unparsed_address_inputs(request, **implicitly())


async def all_targets() -> AllUnexpandedTargets:
    return await graph.find_all_unexpanded_targets()


async def dependencies(request: DependenciesRequest) -> Targets:
    return await graph.resolve_targets(**implicitly(request))


async def target(request: WrappedTargetRequest) -> WrappedTarget:
    return await graph.resolve_target(request, **implicitly())


async def transitive_targets(request: TransitiveTargetsRequest) -> TransitiveTargets:
    return await graph.transitive_targets(request, **implicitly())


async def load_lockfile(request: LoadedLockfileRequest) -> LoadedLockfile:
    return await load(request, **implicitly())


async def lockfile_of_resolve(resolve: Resolve) -> Lockfile:
    return await get_lockfile_for_resolve(resolve, **implicitly())


async def pex_cli_process(request: PexCliProcess) -> Process:
    return await setup_pex_cli_process(request, **implicitly())
