"""Every request that this plugin makes of the Pants engine.

Nothing else in the plugin awaits ``Get``: a newer Pants without ``Get`` needs a second version of this module only. The
functions are plain coroutines, so each takes and returns values that hash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Iterable, Sequence

from pants.backend.python.util_rules.interpreter_constraints import InterpreterConstraints
from pants.backend.python.util_rules.pex import PexRequest, VenvPex, VenvPexProcess
from pants.backend.python.util_rules.pex_cli import PexCliProcess
from pants.backend.python.util_rules.pex_requirements import EntireLockfile, Lockfile, Resolve
from pants.engine.fs import (
    AddPrefix,
    CreateDigest,
    Digest,
    DigestContents,
    DigestEntries,
    DigestSubset,
    FileContent,
    FileEntry,
    GlobMatchErrorBehavior,
    MergeDigests,
    PathGlobs,
    RemovePrefix,
    Snapshot,
)
from pants.engine.process import FallibleProcessResult, Process, ProcessResult
from pants.engine.rules import Get
from pants.engine.target import Dependencies, DependenciesRequest, Target, Targets
from pants.util.logging import LogLevel

# How long a remote cache may take to answer before a local run starts beside it.
REMOTE_SPECULATION_MILLIS = 10_000


async def create_files(files: Iterable[tuple[str, bytes]]) -> Digest:
    """Files of the given contents."""
    return await Get(Digest, CreateDigest([FileContent(path, content) for path, content in files]))


async def merge(digests: Iterable[Digest]) -> Digest:
    """All files of all digests."""
    return await Get(Digest, MergeDigests(digests))


async def subset(digest: Digest, globs: Iterable[str]) -> Digest:
    """The files that match."""
    return await Get(Digest, DigestSubset(digest, PathGlobs(globs)))


async def remove_prefix(digest: Digest, prefix: str) -> Digest:
    """The same files, one folder up."""
    return await Get(Digest, RemovePrefix(digest, prefix))


async def add_prefix(digest: Digest, prefix: str) -> Digest:
    """The same files below a folder."""
    return await Get(Digest, AddPrefix(digest, prefix))


async def snapshot(digest: Digest) -> Snapshot:
    """The digest with the names of its files."""
    return await Get(Snapshot, Digest, digest)


async def read(digest: Digest) -> dict[str, bytes]:
    """File contents by path."""
    contents = await Get(DigestContents, Digest, digest)
    return {file.path: file.content for file in contents}


async def fingerprints(digest: Digest) -> dict[str, str]:
    """sha256 of each file by path, without reading a byte."""
    entries = await Get(DigestEntries, Digest, digest)
    return {entry.path: entry.file_digest.fingerprint for entry in entries if isinstance(entry, FileEntry)}


async def workspace_files(globs: Sequence[str], origin: str) -> Digest:
    """Files of the workspace; ``origin`` says who asked when a glob matches nothing."""
    return await Get(
        Digest,
        PathGlobs(globs, glob_match_error_behavior=GlobMatchErrorBehavior.error, description_of_origin=origin),
    )


async def run(process: Process) -> ProcessResult:
    """Run a process that must succeed."""
    return await Get(ProcessResult, Process, process)


async def try_run(process: Process) -> FallibleProcessResult:
    """Run a process whose failure the caller explains."""
    return await Get(FallibleProcessResult, Process, process)


async def install_wheels(requirements: str, folders: Sequence[str], description: str) -> Digest:
    """The given ``folders`` of wheels that pip installs from a hash-pinned requirements file of the workspace."""
    pinned = await Get(
        Digest,
        PathGlobs(
            [requirements],
            glob_match_error_behavior=GlobMatchErrorBehavior.error,
            description_of_origin="a toolchain of tilewright",
        ),
    )
    result = await Get(
        ProcessResult,
        PexCliProcess(
            subcommand=(),
            extra_args=(
                *("--requirement", requirements, "--intransitive", "--no-build"),
                *("--layout", "loose", "--output-file", "wheels"),
            ),
            additional_input_digest=pinned,
            # A part may be a folder or a file.
            output_directories=folders,
            output_files=folders,
            description=description,
            level=LogLevel.INFO,
        ),
    )
    return result.output_digest


@dataclass(frozen=True)
class PythonTool:
    """A Python program that runs outside of Pants' own process: its packages and its sources."""

    resolve: str
    interpreter_constraints: tuple[str, ...]
    module: str
    source_roots: tuple[str, ...]
    sources: Digest


async def run_python(
    tool: PythonTool,
    arguments: Sequence[str],
    inputs: Digest,
    outputs: Sequence[str],
    description: str,
) -> FallibleProcessResult:
    """``python -m <tool.module> <arguments>`` in a sandbox that holds ``inputs``."""
    lockfile = await Get(Lockfile, Resolve(tool.resolve, use_entire_lockfile=True))
    pex = await Get(
        VenvPex,
        PexRequest(
            output_filename=f"{tool.resolve}.pex",
            internal_only=True,
            requirements=EntireLockfile(lockfile),
            interpreter_constraints=InterpreterConstraints(tool.interpreter_constraints),
        ),
    )
    input_digest = await Get(Digest, MergeDigests([tool.sources, inputs]))
    process = await Get(
        Process,
        VenvPexProcess(
            pex,
            argv=("-m", tool.module, *arguments),
            description=description,
            input_digest=input_digest,
            output_files=outputs,
            # Pex drops PYTHONPATH.
            extra_env={
                "PEX_EXTRA_SYS_PATH": ":".join(tool.source_roots),
                "PYTHONDONTWRITEBYTECODE": "1",
            },
            level=LogLevel.DEBUG,
        ),
    )
    return await Get(FallibleProcessResult, Process, process)


async def direct_dependencies(dependencies: Dependencies) -> tuple[Target, ...]:
    """The targets that a ``dependencies`` field names, generators replaced by what they generate."""
    return tuple(await Get(Targets, DependenciesRequest(dependencies)))
