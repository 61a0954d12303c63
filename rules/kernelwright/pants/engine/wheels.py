"""Wheels of a hash-pinned requirements file, unpacked by pip in a named cache of this machine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from pants.backend.python.util_rules.pex_cli import PexCliProcess
from pants.backend.python.util_rules.pex_requirements import ResolvePexConfig, ResolvePexConfigRequest
from pants.engine.fs import Digest
from pants.engine.process import Process, ProcessCacheScope, ProcessResult
from pants.engine.rules import Get
from pants.util.frozendict import FrozenDict

CACHE = {"kernelwright_wheels": "__wheels"}
# Another build may do the same; the first one to finish wins.
_UNPACK = """\
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


@dataclass(frozen=True)
class PinnedWheels:
    """The wheels of a requirements file: its path, a digest that holds it, and what to call them in messages."""

    requirements: str
    pinned: Digest
    about: str


async def unpack(wheels: PinnedWheels, scope: ProcessCacheScope) -> None:
    """Let pip download and unpack the wheels to ``__wheels/<fingerprint of the requirements>``."""
    repositories = await Get(ResolvePexConfig, ResolvePexConfigRequest(None))
    pip = await Get(
        Process,
        PexCliProcess(
            subcommand=(),
            extra_args=(
                *("--requirement", wheels.requirements, "--intransitive", "--no-build"),
                *("--layout", "loose", "--output-file", "__new/wheels"),
                *repositories.pex_args(),
            ),
            additional_input_digest=wheels.pinned,
            description=f"Download {wheels.about}",
            cache_scope=scope,
        ),
    )
    caches = FrozenDict({**pip.append_only_caches, **CACHE})
    argv = ("/bin/sh", "-c", _UNPACK, "unpack", wheels.pinned.fingerprint, *pip.argv)
    await Get(ProcessResult, Process, dataclasses.replace(pip, argv=argv, append_only_caches=caches))
