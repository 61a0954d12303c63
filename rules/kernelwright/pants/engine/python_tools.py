"""Python environments of tools, made by pex in a named cache of this machine.

Pants has rules that make them. Those can depend on targets, which the code generator makes, which is a cycle. Pants
resolves it when it starts: 2.7 CPU seconds instead of 0.6 (``benchmarks/build/plugin_start.py``).
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Optional

from kernelwright.pants.compat import calls
from kernelwright.pants.engine import digests, interpreters
from kernelwright.pants.engine.wheels import DownloadError, failure
from pants.backend.python.util_rules.pex_cli import PexCliProcess
from pants.backend.python.util_rules.pex_requirements import LoadedLockfileRequest, Lockfile, Resolve
from pants.engine.fs import Digest
from pants.engine.process import ProcessCacheScope
from pants.util.frozendict import FrozenDict

CACHE = {"kernelwright_pythons": "__pythons"}
# Another build may do the same; the first one to finish wins. Only a finished environment is recorded.
_MAKE = """\
set -e
kept="__pythons/$1.venv"
note="__pythons/$1"
python="$(eval "$2" | head -n 1)"
[ -n "$python" ] || exit 85
shift 2
if [ ! -x "$kept/bin/python" ]; then # or its interpreter is gone
  rm -rf "$kept"
  new="$(mktemp -d __pythons/.new.XXXXXX)"
  trap 'rm -rf "$new"' EXIT
  ln -s "$new" __new
  "$@" --python "$python"
  mv -T "$new/venv" "$kept" || [ -x "$kept/bin/python" ]
fi
echo "$(cd "$kept" && pwd -P)/bin/python" >"$note.$$"
mv -f "$note.$$" "$note"
"""


@dataclass(frozen=True)
class PythonTool:
    """A Python program that runs outside Pants' own process: its packages and its sources.

    ``lockfile`` is None for the lockfile of the resolve, or a requirements file of the plugin: ``resource://…``.
    ``arch_path`` lists the folders of its sources that hold architecture files.
    """

    resolve: str
    lockfile: Optional[str]
    interpreter_constraints: tuple[str, ...]
    pip_version: str
    module: str
    source_roots: tuple[str, ...]
    sources: Digest
    arch_path: tuple[str, ...] = ()


@dataclass(frozen=True)
class PythonEnvironment:
    """The environment of a tool on this machine; ``key`` is a sha256 of the pinned packages and interpreters."""

    tool: PythonTool
    requirements: str
    pinned: Digest
    key: str


async def environment_of(tool: PythonTool) -> PythonEnvironment:
    """Return the environment that a tool needs, whether it exists or not."""
    if tool.lockfile is None:
        lockfile = await calls.lockfile_of_resolve(Resolve(tool.resolve, use_entire_lockfile=True))
    else:
        lockfile = Lockfile(tool.lockfile, f"the plugin {tool.module}", tool.resolve)
    loaded = await calls.load_lockfile(LoadedLockfileRequest(lockfile))
    content = "\n".join((loaded.lockfile_digest.fingerprint, *tool.interpreter_constraints))
    key = hashlib.sha256(content.encode()).hexdigest()
    return PythonEnvironment(tool, loaded.lockfile_path, loaded.lockfile_digest, key)


async def make(environment: PythonEnvironment, scope: ProcessCacheScope) -> None:
    """Create the environment, and record the path of its interpreter in ``__pythons/<key>``.

    Raises DownloadError, and BadInput if no Python satisfies the tool's constraints.
    """
    tool = environment.tool
    contents = await digests.read(environment.pinned)
    locked = contents[environment.requirements].lstrip()[:1] in (b"{", b"/")  # pex's own format, otherwise requirements
    requirements = ("--lock",) if locked else ("--intransitive", "--requirement")
    repositories = await calls.python_repositories()
    pex = await calls.pex_cli_process(
        PexCliProcess(
            subcommand=("venv", "create"),
            extra_args=(
                *("--dest-dir", "__new/venv", "--pip-version", tool.pip_version),
                *repositories.pex_args(),
                *(*requirements, environment.requirements),
            ),
            additional_input_digest=environment.pinned,
            description=f"Prepare Python for {tool.module}",
            cache_scope=scope,
        ),
    )
    find = interpreters.finding(pex.argv, tool.interpreter_constraints)
    argv = ("/bin/sh", "-c", _MAKE, "make", environment.key, find, *pex.argv)
    caches = FrozenDict({**pex.append_only_caches, **CACHE})
    # A system-wide configuration, for example a constraint, would make pip fail or use another index.
    env = FrozenDict({**pex.env, "PIP_CONFIG_FILE": "/dev/null"})
    process = dataclasses.replace(pex, argv=argv, append_only_caches=caches, env=env)
    result = await calls.execute(process)
    interpreters.check_found(result.exit_code, tool.module, tool.interpreter_constraints)
    if result.exit_code != 0:
        about = f"packages of {tool.module}"
        raise DownloadError(failure(about, environment.requirements, repositories.indexes, result.stderr))
