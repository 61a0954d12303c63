"""Calls of Pants' own rules, each with one request."""

from __future__ import annotations

import sys

assert sys.version_info < (3, 11), "for Pants 2.17"


from kernelwright.pants.compat.pants_2_17.rules import effect, get
from pants.backend.python.util_rules.pex_cli import PexCliProcess
from pants.backend.python.util_rules.pex_requirements import (
    LoadedLockfile,
    LoadedLockfileRequest,
    Lockfile,
    Resolve,
    ResolvePexConfig,
    ResolvePexConfigRequest,
)
from pants.core.util_rules.environments import EnvironmentNameRequest, EnvironmentTarget, RemotePlatformField
from pants.core.util_rules.source_files import SourceFiles, SourceFilesRequest
from pants.core.util_rules.stripped_source_files import StrippedSourceFiles
from pants.engine.addresses import Addresses, UnparsedAddressInputs
from pants.engine.environment import EnvironmentName
from pants.engine.fs import (
    AddPrefix,
    CreateDigest,
    Digest,
    DigestContents,
    DigestEntries,
    DigestSubset,
    MergeDigests,
    PathGlobs,
    RemovePrefix,
    Snapshot,
)
from pants.engine.process import FallibleProcessResult, InteractiveProcess, InteractiveProcessResult, Process
from pants.engine.rules import Get
from pants.engine.target import (
    AllUnexpandedTargets,
    DependenciesRequest,
    Targets,
    TransitiveTargets,
    TransitiveTargetsRequest,
    WrappedTarget,
    WrappedTargetRequest,
)

add_prefix = get(Digest, AddPrefix)
create_digest = get(Digest, CreateDigest)
digest_contents = get(DigestContents, Digest)
digest_entries = get(DigestEntries, Digest)
digest_subset = get(Digest, DigestSubset)
merge_digests = get(Digest, MergeDigests)
path_globs = get(Digest, PathGlobs)
remove_prefix = get(Digest, RemovePrefix)
snapshot = get(Snapshot, Digest)

execute = get(FallibleProcessResult, Process)
run_interactively = effect(InteractiveProcessResult, InteractiveProcess)

addresses = get(Addresses, UnparsedAddressInputs)
all_targets = get(AllUnexpandedTargets)
dependencies = get(Targets, DependenciesRequest)
source_files = get(SourceFiles, SourceFilesRequest)
stripped_source_files = get(StrippedSourceFiles, SourceFiles)
target = get(WrappedTarget, WrappedTargetRequest)
transitive_targets = get(TransitiveTargets, TransitiveTargetsRequest)

load_lockfile = get(LoadedLockfile, LoadedLockfileRequest)
lockfile_of_resolve = get(Lockfile, Resolve)
pex_cli_process = get(Process, PexCliProcess)


async def execute_in(process: Process, environment: EnvironmentName) -> FallibleProcessResult:
    """Run a process in an environment."""
    return await Get(FallibleProcessResult, {process: Process, environment: EnvironmentName})


async def environment(name: str, origin: str) -> EnvironmentName:
    """Return the environment called ``name``; ``origin`` is the option that holds the name."""
    return await Get(EnvironmentName, EnvironmentNameRequest(name, description_of_origin=origin))


async def is_remote(environment: EnvironmentName) -> bool:
    """Whether an environment is a ``remote_environment``."""
    target = await Get(EnvironmentTarget, EnvironmentName, environment)
    return target.val is not None and target.val.has_field(RemotePlatformField)


async def python_repositories() -> ResolvePexConfig:
    """Return the configured sources of Python packages."""
    return await Get(ResolvePexConfig, ResolvePexConfigRequest(None))
