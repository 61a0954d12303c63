"""Portable processes: their cache keys are the same on every machine.

A process that Pants makes for pip or for a Python tool names interpreters, search paths and the PATH of this machine,
so its cache key, and the keys of all processes that use its results, hold for this machine only. The processes of this
module name only pinned requirements. Everything that differs between machines is kept in named caches, which are not
part of a key: unpacked wheels, and the path of a tool's interpreter. A process that lacks them ends with
``_NOT_PREPARED``; only then does Pants prepare them, and the process runs again. A machine that finds every result in a
remote cache prepares nothing.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Sequence

from kernelwright.pants import damaged_store
from kernelwright.pants.engine import digests, processes, python_tools, wheels
from kernelwright.pants.engine.python_tools import PythonEnvironment, PythonTool
from kernelwright.pants.engine.wheels import PinnedWheels
from pants.engine.fs import Digest
from pants.engine.process import FallibleProcessResult, Process, ProcessCacheScope
from pants.util.frozendict import FrozenDict
from pants.util.logging import LogLevel

_NOT_PREPARED = 86
_ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
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
_FIND_PYTHON = """\
python="$(cat "__pythons/$1" 2>/dev/null)" && [ -x "$python" ] || exit 86
echo "$python"
"""
_RUN_PYTHON = f"""\
{damaged_store.COMPARE_CHECKSUMS}
python="$(cat "__pythons/$1" 2>/dev/null)" && [ -x "$python" ] || exit 86
shift
exec "$python" "$@"
"""


@dataclass(frozen=True)
class ForegroundCommand:
    """A command line, variables added to those of the user, and the files of its folder."""

    argv: tuple[str, ...]
    env: FrozenDict[str, str]
    inputs: Digest


async def wheel_files(pinned: PinnedWheels, parts: Sequence[tuple[str, Sequence[str]]]) -> Digest:
    """Return parts of wheels: ``parts`` pairs wheel file names with folders and files inside them.

    A separate process lists the files, so that the one that copies them can name each as an output: a cache server may
    not support output folders.
    """
    names = [f"{wheel}/{part}" for wheel, inner in parts for part in inner]
    listed = await _with_wheels(
        _wheel_process(_LIST_WHEELS, pinned, names, (), f"List files of {pinned.about}"), pinned
    )
    files = listed.stdout.decode().splitlines()
    copying = _wheel_process(_COPY_WHEELS, pinned, names, files, f"Install {pinned.about}")
    copied = await _with_wheels(copying, pinned)
    for result in (listed, copied):
        if result.exit_code != 0 or not files:
            raise ValueError(f"{pinned.about} cannot be installed:\n{result.stderr.decode(errors='replace').strip()}")
    return copied.output_digest


def _wheel_process(
    script: str, pinned: PinnedWheels, parts: Sequence[str], outputs: Sequence[str], description: str
) -> Process:
    return Process(
        ("/bin/sh", "-c", script, "wheels", pinned.pinned.fingerprint, *parts),
        description=description,
        env=_ENV,
        append_only_caches=wheels.CACHE,
        output_files=outputs,
        level=LogLevel.DEBUG,
        remote_cache_speculation_delay_millis=processes.REMOTE_SPECULATION_MILLIS,
    )


async def run_python(
    tool: PythonTool,
    arguments: Sequence[str],
    inputs: Digest,
    outputs: Sequence[str],
    description: str,
    env: Sequence[tuple[str, str]] = (),
) -> FallibleProcessResult:
    """Run ``python -m <tool.module> <arguments>`` in a sandbox with ``inputs`` and the additional variables ``env``."""
    environment = await python_tools.environment_of(tool)
    input_digest = await digests.with_checksums(await digests.merge([tool.sources, inputs]))
    process = Process(
        ("/bin/sh", "-c", _RUN_PYTHON, "python", environment.key, "-m", tool.module, *arguments),
        description=description,
        input_digest=input_digest,
        env={
            **_ENV,
            "PYTHONPATH": ":".join(tool.source_roots),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONNOUSERSITE": "1",
            **_arch_path(tool, ""),
            **dict(env),
        },
        append_only_caches=python_tools.CACHE,
        output_files=outputs,
        level=LogLevel.DEBUG,
        remote_cache_speculation_delay_millis=processes.REMOTE_SPECULATION_MILLIS,
    )
    return await _with_python(process, environment)


async def foreground_python(tool: PythonTool, arguments: Sequence[str], inputs: Digest) -> ForegroundCommand:
    """Return ``python -m <tool.module> <arguments>`` for a foreground process, which is not part of the graph.

    ``{chroot}`` in arguments stands for a folder that holds ``inputs`` while the process runs.
    """
    environment = await python_tools.environment_of(tool)
    finding = Process(
        ("/bin/sh", "-c", _FIND_PYTHON, "find", environment.key),
        description=f"Find Python for {tool.module}",
        env=_ENV,
        append_only_caches=python_tools.CACHE,
        cache_scope=ProcessCacheScope.PER_SESSION,
        level=LogLevel.DEBUG,
    )
    completed = await _with_python(finding, environment)
    path = ":".join(f"{{chroot}}/{root}" for root in (tool.source_roots or (".",)))
    env = {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONNOUSERSITE": "1"}
    env.update(_arch_path(tool, "{chroot}/"))
    argv = (completed.stdout.decode().strip(), "-m", tool.module, *arguments)
    return ForegroundCommand(argv, FrozenDict(env), await digests.merge([tool.sources, inputs]))


def _arch_path(tool: PythonTool, folder: str) -> dict[str, str]:
    """Return the setting by which the tool finds the workspace's architecture files; ``folder`` holds its sources."""
    path = ":".join(f"{folder}{one}" for one in tool.arch_path)
    return {"KERNELWRIGHT_ARCH_PATH": path} if path else {}


# The level is not part of a cache key, but the engine treats a process with another level as another process, and so
# runs it after the first has failed. The second attempt is for named caches that were removed while a daemon was
# running.
_ATTEMPTS = (
    (LogLevel.TRACE, ProcessCacheScope.PER_RESTART_SUCCESSFUL),
    (LogLevel.INFO, ProcessCacheScope.PER_SESSION),
)


async def _with_wheels(process: Process, needs: PinnedWheels) -> FallibleProcessResult:
    """Run a portable process; unpack the wheels that it needs if no cache has its result."""
    result = await processes.try_run(process)
    for level, scope in _ATTEMPTS:
        if result.exit_code != _NOT_PREPARED:
            break
        await wheels.unpack(needs, scope)
        result = await processes.try_run(dataclasses.replace(process, level=level))
    return _checked(result, process)


async def _with_python(process: Process, needs: PythonEnvironment) -> FallibleProcessResult:
    """Run a portable process; create the Python environment that it needs if no cache has its result."""
    result = await processes.try_run(process)
    for level, scope in _ATTEMPTS:
        if result.exit_code != _NOT_PREPARED:
            break
        await python_tools.make(needs, scope)
        result = await processes.try_run(dataclasses.replace(process, level=level))
    return _checked(result, process)


def _checked(result: FallibleProcessResult, process: Process) -> FallibleProcessResult:
    damaged_store.check_inputs(result.exit_code, result.stderr, process.description)
    return result
