"""Wheels of a hash-pinned requirements file, unpacked by pip in a named cache of this machine."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from urllib.parse import urlsplit

from kernelwright.pants.compat import calls
from kernelwright.pants.engine import interpreters
from pants.backend.python.util_rules.pex_cli import PexCliProcess
from pants.engine.fs import Digest
from pants.engine.process import ProcessCacheScope
from pants.util.frozendict import FrozenDict

CACHE = {"kernelwright_wheels": "__wheels"}
# Wheels require a Python version. This is the code generator's, so that wheels need no other interpreter.
_PYTHON = ("CPython>=3.11,<3.15",)
# Another build may do the same; the first one to finish wins.
_UNPACK = """\
set -e
kept="__wheels/$1"
[ ! -d "$kept" ] || exit 0
python="$(eval "$2" | head -n 1)"
[ -n "$python" ] || exit 85
shift 2
new="$(mktemp -d __wheels/.new.XXXXXX)"
trap 'rm -rf "$new"' EXIT
ln -s "$new" __new
"$@" --python "$python"
mv -T "$new/wheels/.deps" "$kept" || [ -d "$kept" ]
"""


@dataclass(frozen=True)
class PinnedWheels:
    """The wheels of a requirements file: its path, a digest that holds it, and what to call them in messages."""

    requirements: str
    pinned: Digest
    about: str


class DownloadError(Exception):
    """Wheels could not be downloaded: which ones, from where, pip's last words, and what to set."""


async def unpack(wheels: PinnedWheels, scope: ProcessCacheScope) -> None:
    """Let pip download and unpack the wheels to ``__wheels/<fingerprint of the requirements>``.

    Ignores the machine's pip configuration. Raises DownloadError, and BadInput if no suitable Python exists.
    """
    repositories = await calls.python_repositories()
    pip = await calls.pex_cli_process(
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
    find = interpreters.finding(pip.argv, _PYTHON)
    argv = ("/bin/sh", "-c", _UNPACK, "unpack", wheels.pinned.fingerprint, find, *pip.argv)
    # A system-wide configuration, for example a constraint, would make pip fail or use another index.
    env = FrozenDict({**pip.env, "PIP_CONFIG_FILE": "/dev/null"})
    process = dataclasses.replace(pip, argv=argv, append_only_caches=caches, env=env)
    result = await calls.execute(process)
    interpreters.check_found(result.exit_code, f"pip for {wheels.about}", _PYTHON)
    if result.exit_code != 0:
        raise DownloadError(failure(wheels.about, wheels.requirements, repositories.indexes, result.stderr))


def failure(about: str, requirements: str, indexes: tuple[str, ...], printed: bytes) -> str:
    """Return one line about a failed download. Indexes are named without credentials in their addresses."""
    stderr = printed.decode(errors="replace")
    hosts = ", ".join(urlsplit(index).hostname or index for index in indexes) or "no index"
    words = [line.strip() for line in stderr.splitlines() if line.strip()]
    errors = [line for line in words if line.startswith("ERROR:")] or words or ["no message"]
    return (
        f"cannot download {about} ({requirements}) from {hosts}: {errors[-1]}; set "
        "[python-repos].indexes to an index with these wheels, [GLOBAL].ca_certs_path to its authority, HTTPS_PROXY to "
        "a proxy"
    )
