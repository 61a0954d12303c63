"""Python environments of tools, made by Pants in a named cache of this machine."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Optional

from kernelwright.pants.compat import calls
from pants.backend.python.util_rules.interpreter_constraints import InterpreterConstraints
from pants.backend.python.util_rules.pex import PexRequest, VenvPexProcess
from pants.backend.python.util_rules.pex_requirements import EntireLockfile, LoadedLockfileRequest, Lockfile, Resolve
from pants.engine.fs import Digest
from pants.engine.process import ProcessCacheScope
from pants.util.logging import LogLevel

CACHE = {"kernelwright_pythons": "__pythons"}
_RECORD_INTERPRETER = """\
import os, sys
note = os.path.join("__pythons", sys.argv[1])
new = f"{note}.{os.getpid()}"
with open(new, "w") as file:
    file.write(os.path.join(os.path.realpath(sys.prefix), "bin", "python"))
os.replace(new, note)
"""


@dataclass(frozen=True)
class PythonTool:
    """A Python program that runs outside Pants' own process: its packages and its sources.

    ``lockfile`` is None for the lockfile of the resolve, or a requirements file of the plugin: ``resource://…``.
    """

    resolve: str
    lockfile: Optional[str]
    interpreter_constraints: tuple[str, ...]
    module: str
    source_roots: tuple[str, ...]
    sources: Digest


@dataclass(frozen=True)
class PythonEnvironment:
    """The environment of a tool on this machine; ``key`` is a sha256 of the pinned packages and interpreters."""

    tool: PythonTool
    lockfile: Lockfile
    key: str


async def environment_of(tool: PythonTool) -> PythonEnvironment:
    """The environment that a tool needs, whether it has been made or not."""
    if tool.lockfile is None:
        lockfile = await calls.lockfile_of_resolve(Resolve(tool.resolve, use_entire_lockfile=True))
    else:
        lockfile = Lockfile(tool.lockfile, f"the plugin {tool.module}", tool.resolve)
    loaded = await calls.load_lockfile(LoadedLockfileRequest(lockfile))
    content = "\n".join((loaded.lockfile_digest.fingerprint, *tool.interpreter_constraints))
    return PythonEnvironment(tool, lockfile, hashlib.sha256(content.encode()).hexdigest())


async def make(environment: PythonEnvironment, scope: ProcessCacheScope) -> None:
    """Let Pants make the environment, and record the path of its interpreter in ``__pythons/<key>``."""
    tool = environment.tool
    pex = await calls.venv_pex(
        PexRequest(
            output_filename=f"{tool.resolve}.pex",
            internal_only=True,
            requirements=EntireLockfile(environment.lockfile),
            interpreter_constraints=InterpreterConstraints(tool.interpreter_constraints),
        ),
    )
    await calls.run_venv_pex(
        VenvPexProcess(
            pex,
            argv=("-c", _RECORD_INTERPRETER, environment.key),
            description=f"Prepare Python for {tool.module}",
            append_only_caches=CACHE,
            cache_scope=scope,
            level=LogLevel.DEBUG,
        ),
    )
