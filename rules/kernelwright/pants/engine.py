"""Every request that this plugin makes of the Pants engine.

Nothing else in the plugin awaits ``Get``: a newer Pants without ``Get`` needs a second version of this module only. The
functions are plain coroutines, so each takes and returns values that hash.
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from dataclasses import dataclass
from typing import Iterable, Mapping, Optional, Sequence, Type, Union

from kernelwright.pants.damaged_store import DamagedStore
from pants.backend.python.util_rules.interpreter_constraints import InterpreterConstraints
from pants.backend.python.util_rules.pex import PexRequest, VenvPex, VenvPexProcess
from pants.backend.python.util_rules.pex_cli import PexCliProcess
from pants.backend.python.util_rules.pex_requirements import (
    EntireLockfile,
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
from pants.engine.addresses import Address, Addresses, UnparsedAddressInputs
from pants.engine.environment import EnvironmentName
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
from pants.engine.process import FallibleProcessResult, Process, ProcessCacheScope, ProcessResult
from pants.engine.rules import Get
from pants.engine.target import (
    Dependencies,
    DependenciesRequest,
    SourcesField,
    SpecialCasedDependencies,
    Target,
    Targets,
    TransitiveTargets,
    TransitiveTargetsRequest,
)
from pants.util.frozendict import FrozenDict
from pants.util.logging import LogLevel

_logger = logging.getLogger(__name__)

# Pants 2.17.1 gives all of its collections the hash of `typing.Tuple`, so every new CreateDigest would be compared with
# every former one: a second for each hundred kernels, when there are thousands.
CreateDigest.__hash__ = tuple.__hash__  # type: ignore[assignment,method-assign]

_DAMAGED = 87


# How long a remote cache may take to answer before a local run starts beside it.
REMOTE_SPECULATION_MILLIS = 10_000

# Portable processes. A process that Pants makes for pip or for a Python tool names interpreters, search paths and the
# PATH of this machine, so its cache key, and those of all that use its results, are good for this machine only. Ours
# name pinned requirements and nothing else. What differs between machines is kept in named caches, which are no part
# of a key: unpacked wheels, and where the tool's interpreter is. Such a process says _NOT_PREPARED where these are
# missing; only then does Pants prepare them, and the process runs again. A machine that finds all results in a
# remote cache prepares nothing.
_NOT_PREPARED = 86
_PORTABLE_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
_WHEELS = {"kernelwright_wheels": "__wheels"}
_PYTHONS = {"kernelwright_pythons": "__pythons"}
_LIST_WHEELS = """\
files="$PWD/files"
cd "__wheels/$1" 2>/dev/null || exit 86
shift
set -e
for part; do
  (cd "${part%%/*}" && find -L "${part#*/}" -type f) >>"$files"
done
sort -u "$files"
"""
_COPY_WHEELS = """\
wheels="__wheels/$1"
[ -d "$wheels" ] || exit 86
shift
set -e
for part; do
  inner="${part#*/}"
  mkdir -p "$(dirname "$inner")"
  cp -RL "$wheels/$part" "$(dirname "$inner")"
done
"""
# Another build may do the same; whoever comes first wins.
_KEEP_WHEELS = """\
set -e
kept="__wheels/$1"
shift
[ ! -d "$kept" ] || exit 0
new="$(mktemp -d __wheels/.new.XXXXXX)"
trap 'rm -rf "$new"' EXIT
ln -s "$new" __new
"$@"
mv -T "$new/wheels/.deps" "$kept" || [ -d "$kept" ]
"""
_RUN_PYTHON = """\
if [ -s __inputs.sha256 ]; then
  sha256sum --check --quiet __inputs.sha256 >&2 || exit 87
fi
python="$(cat "__pythons/$1" 2>/dev/null)" && [ -x "$python" ] || exit 86
shift
exec "$python" "$@"
"""
_KEEP_PYTHON = """\
import os, sys
note = os.path.join("__pythons", sys.argv[1])
new = f"{note}.{os.getpid()}"
with open(new, "w") as file:
    file.write(os.path.join(os.path.realpath(sys.prefix), "bin", "python"))
os.replace(new, note)
"""


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
    """File contents by path. Raises DamagedStore if they are not what they were."""
    contents = await Get(DigestContents, Digest, digest)
    known = await fingerprints(digest)
    for file in contents:
        if hashlib.sha256(file.content).hexdigest() != known[file.path]:
            raise DamagedStore(file.path)
    return {file.path: file.content for file in contents}


async def with_digests(digest: Digest) -> Digest:
    """The same files and, for ``sha256sum --check``, the digests of all of them in ``__inputs.sha256``."""
    known = sorted((await fingerprints(digest)).items())
    sums = "".join(f"{fingerprint}  {path}\n" for path, fingerprint in known)
    return await merge([digest, await create_files([("__inputs.sha256", sums.encode())])])


def check_inputs(result: FallibleProcessResult, what: str) -> None:
    """Raise DamagedStore if a process found that its inputs are not what ``__inputs.sha256`` says."""
    if result.exit_code == _DAMAGED:
        raise DamagedStore(f"{what}: {result.stderr.decode(errors='replace').strip()}")


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


async def check_build_files(folders: Iterable[str]) -> None:
    """Raise DamagedStore if Pants reads other BUILD files than there are: one flipped bit is another legal number."""
    globs = sorted(f"{folder}/{name}".lstrip("/") for folder in set(folders) for name in ("BUILD", "BUILD.*"))
    await read(await Get(Digest, PathGlobs(globs, glob_match_error_behavior=GlobMatchErrorBehavior.ignore)))


async def run(process: Process) -> ProcessResult:
    """Run a process that must succeed."""
    return await Get(ProcessResult, Process, process)


async def try_run(process: Process) -> FallibleProcessResult:
    """Run a process whose failure the caller explains.

    A remote cache that mixes up its answers gives a result without the outputs that were asked for: then the process is
    run, whatever any cache says.
    """
    result = await Get(FallibleProcessResult, Process, process)
    if result.exit_code != 0 or not await missing_outputs(result, process.output_files):
        return result
    _logger.warning(f"A cache answered {process.description!r} with the result of another process; running it.")
    uncached = dataclasses.replace(process, cache_scope=ProcessCacheScope.PER_SESSION)
    return await Get(FallibleProcessResult, Process, uncached)


async def missing_outputs(result: FallibleProcessResult, outputs: Iterable[str]) -> tuple[str, ...]:
    """Those of the files that are not in the result."""
    found = await Get(Snapshot, Digest, result.output_digest)
    return tuple(sorted(set(outputs) - set(found.files)))


async def try_run_in(environment: str, origin: str, process: Process) -> FallibleProcessResult:
    """The same in an environment by its name; ``origin`` says which option holds it.

    Pants writes the number of the local slot into the command that it sends to workers, and so into the key of the
    result, which nobody would ever find again: what goes to workers has no slot.
    """
    name = await Get(EnvironmentName, EnvironmentNameRequest(environment, description_of_origin=origin))
    target = await Get(EnvironmentTarget, EnvironmentName, name)
    if target.val is not None and target.val.has_field(RemotePlatformField):
        process = dataclasses.replace(process, execution_slot_variable=None)
    return await Get(FallibleProcessResult, {process: Process, name: EnvironmentName})


@dataclass(frozen=True)
class _Wheels:
    """Wheels that a hash-pinned requirements file names, unpacked in a folder of this machine."""

    requirements: str
    pinned: Digest
    about: str


async def wheel_files(
    requirements: str, pinned: Digest, wheels: Sequence[tuple[str, Sequence[str]]], about: str
) -> Digest:
    """The named parts of wheels that a hash-pinned requirements file names; ``pinned`` holds that file.

    ``wheels`` maps wheel file names to folders and files inside of them. Listing the files is a process of its own, so
    that the second one can name each of them: a cache server may know nothing of output folders.
    """
    needs = _Wheels(requirements, pinned, about)
    parts = [f"{wheel}/{part}" for wheel, names in wheels for part in names]
    listed = await _run_prepared(_wheel_process(_LIST_WHEELS, needs, parts, (), f"List files of {about}"), needs)
    files = listed.stdout.decode().splitlines()
    copied = await _run_prepared(_wheel_process(_COPY_WHEELS, needs, parts, files, f"Install {about}"), needs)
    for result in (listed, copied):
        if result.exit_code != 0 or not files:
            raise ValueError(f"{about} cannot be installed:\n{result.stderr.decode(errors='replace').strip()}")
    return copied.output_digest


def _wheel_process(
    script: str, needs: _Wheels, parts: Sequence[str], outputs: Sequence[str], description: str
) -> Process:
    return Process(
        ("/bin/sh", "-c", script, "wheels", needs.pinned.fingerprint, *parts),
        description=description,
        env=_PORTABLE_ENV,
        append_only_caches=_WHEELS,
        output_files=outputs,
        level=LogLevel.DEBUG,
        remote_cache_speculation_delay_millis=REMOTE_SPECULATION_MILLIS,
    )


async def _keep_wheels(needs: _Wheels, scope: ProcessCacheScope) -> None:
    """Let pip unpack the wheels."""
    repositories = await Get(ResolvePexConfig, ResolvePexConfigRequest(None))
    pip = await Get(
        Process,
        PexCliProcess(
            subcommand=(),
            extra_args=(
                *("--requirement", needs.requirements, "--intransitive", "--no-build"),
                *("--layout", "loose", "--output-file", "__new/wheels"),
                *repositories.pex_args(),
            ),
            additional_input_digest=needs.pinned,
            description=f"Download {needs.about}",
            cache_scope=scope,
        ),
    )
    caches = FrozenDict({**pip.append_only_caches, **_WHEELS})
    argv = ("/bin/sh", "-c", _KEEP_WHEELS, "keep", needs.pinned.fingerprint, *pip.argv)
    await Get(ProcessResult, Process, dataclasses.replace(pip, argv=argv, append_only_caches=caches))


@dataclass(frozen=True)
class PythonTool:
    """A Python program that runs outside of Pants' own process: its packages and its sources.

    ``lockfile`` is None for the lockfile of the resolve, or a requirements file of the plugin: ``resource://…``.
    """

    resolve: str
    lockfile: Optional[str]
    interpreter_constraints: tuple[str, ...]
    module: str
    source_roots: tuple[str, ...]
    sources: Digest


@dataclass(frozen=True)
class _PythonEnvironment:
    """The environment of a tool on this machine; ``key`` says what is in it."""

    tool: PythonTool
    lockfile: Lockfile
    key: str


async def run_python(
    tool: PythonTool,
    arguments: Sequence[str],
    inputs: Digest,
    outputs: Sequence[str],
    description: str,
) -> FallibleProcessResult:
    """``python -m <tool.module> <arguments>`` in a sandbox that holds ``inputs``."""
    if tool.lockfile is None:
        lockfile = await Get(Lockfile, Resolve(tool.resolve, use_entire_lockfile=True))
    else:
        lockfile = Lockfile(tool.lockfile, f"the plugin {tool.module}", tool.resolve)
    loaded = await Get(LoadedLockfile, LoadedLockfileRequest(lockfile))
    content = "\n".join((loaded.lockfile_digest.fingerprint, *tool.interpreter_constraints))
    needs = _PythonEnvironment(tool, lockfile, hashlib.sha256(content.encode()).hexdigest())
    input_digest = await with_digests(await merge([tool.sources, inputs]))
    process = Process(
        ("/bin/sh", "-c", _RUN_PYTHON, "python", needs.key, "-m", tool.module, *arguments),
        description=description,
        input_digest=input_digest,
        env={
            **_PORTABLE_ENV,
            "PYTHONPATH": ":".join(tool.source_roots),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
        },
        append_only_caches=_PYTHONS,
        output_files=outputs,
        level=LogLevel.DEBUG,
        remote_cache_speculation_delay_millis=REMOTE_SPECULATION_MILLIS,
    )
    return await _run_prepared(process, needs)


async def _keep_python(needs: _PythonEnvironment, scope: ProcessCacheScope) -> None:
    """Let Pants make the tool's environment, and leave a note of where its interpreter is."""
    pex = await Get(
        VenvPex,
        PexRequest(
            output_filename=f"{needs.tool.resolve}.pex",
            internal_only=True,
            requirements=EntireLockfile(needs.lockfile),
            interpreter_constraints=InterpreterConstraints(needs.tool.interpreter_constraints),
        ),
    )
    await Get(
        ProcessResult,
        VenvPexProcess(
            pex,
            argv=("-c", _KEEP_PYTHON, needs.key),
            description=f"Prepare Python for {needs.tool.module}",
            append_only_caches=_PYTHONS,
            cache_scope=scope,
            level=LogLevel.DEBUG,
        ),
    )


# The level is no part of a cache key, but the engine takes a process of another level for another one, and so runs it
# after the first has failed. The second attempt is for a machine whose named caches were removed under a live daemon.
_ATTEMPTS = (
    (LogLevel.TRACE, ProcessCacheScope.PER_RESTART_SUCCESSFUL),
    (LogLevel.INFO, ProcessCacheScope.PER_SESSION),
)


async def _run_prepared(process: Process, needs: Union[_Wheels, _PythonEnvironment]) -> FallibleProcessResult:
    """Run a portable process; prepare what it needs when no cache knows its result and it is not there."""
    result = await try_run(process)
    for level, scope in _ATTEMPTS:
        if result.exit_code != _NOT_PREPARED:
            break
        if isinstance(needs, _Wheels):
            await _keep_wheels(needs, scope)
        else:
            await _keep_python(needs, scope)
        result = await try_run(dataclasses.replace(process, level=level))
    check_inputs(result, process.description)
    return result


async def transitive_dependencies(address: Address) -> tuple[Target, ...]:
    """The targets that a target depends on, directly or not."""
    closure = await Get(TransitiveTargets, TransitiveTargetsRequest([address]))
    return tuple(closure.dependencies)


async def sources(targets: Iterable[Target], kinds: tuple[Type[SourcesField], ...], codegen: bool) -> Digest:
    """The targets' files as they stand in the workspace, generated ones among them if ``codegen``."""
    request = SourceFilesRequest(
        [target.get(SourcesField) for target in targets], for_sources_types=kinds, enable_codegen=codegen
    )
    found = await Get(SourceFiles, SourceFilesRequest, request)
    return found.snapshot.digest


async def strip_source_roots(digest: Digest) -> Digest:
    """The same files as Python sees them."""
    stripped = await Get(StrippedSourceFiles, SourceFiles(await snapshot(digest), ()))
    return stripped.snapshot.digest


async def rename(digest: Digest, names: Mapping[str, str]) -> Digest:
    """The files that ``names`` maps, at their new paths, without reading a byte."""
    entries = await Get(DigestEntries, Digest, digest)
    return await Get(
        Digest,
        CreateDigest(
            [
                FileEntry(names[entry.path], entry.file_digest, entry.is_executable)
                for entry in entries
                if isinstance(entry, FileEntry) and entry.path in names
            ]
        ),
    )


async def parse_address(text: str, owner: Address, field: str) -> Address:
    """The target that a field of ``owner`` names."""
    inputs = UnparsedAddressInputs([text], owning_address=owner, description_of_origin=f"{owner}'s field {field}")
    (address,) = await Get(Addresses, UnparsedAddressInputs, inputs)
    return address


async def direct_dependencies(dependencies: Dependencies) -> tuple[Target, ...]:
    """The targets that a ``dependencies`` field names, generators replaced by what they generate."""
    return tuple(await Get(Targets, DependenciesRequest(dependencies)))


async def addresses(field: SpecialCasedDependencies) -> tuple[Address, ...]:
    """What a field names that is no ``dependencies`` field."""
    return tuple(await Get(Addresses, UnparsedAddressInputs, field.to_unparsed_address_inputs()))
