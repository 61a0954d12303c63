"""A machine of its own for a build: another checkout, home, PATH, user, launcher path, and empty local caches."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e import launcher
from e2e.workspace import ROOT, copy_repository

_USER = 54321
_KEPT = re.compile(r"Preserving local process execution dir (\S+) for (.*)")
_PLUGIN_LOADED = "Extracting plugin locations"  # the last process of those by which Pants loads a plugin from wheels
_COUNTER = re.compile(r"^  (\w+): (\d+)$", flags=re.MULTILINE)


@dataclass(frozen=True)
class Build:
    """One Pants call. ``ran`` are the processes that were executed here, ``stats`` Pants' own counters.

    A plugin from wheels is loaded by processes that no remote cache answers; ``ran`` is what ran after them.
    """

    exit_code: int
    log: str
    wall_s: float
    ran: tuple[str, ...]
    stats: Mapping[str, int]

    @classmethod
    def read(cls, exit_code: int, log: str, wall_s: float) -> Build:
        """What the log of a call that kept its sandboxes says."""
        executed = [description.strip().strip('"') for _, description in _KEPT.findall(log)]
        if launcher.named() and _PLUGIN_LOADED in executed:
            executed = executed[executed.index(_PLUGIN_LOADED) + 1 :]
        counters = {name: int(value) for name, value in _COUNTER.findall(log)}
        return cls(exit_code, log, wall_s, tuple(sorted(executed)), counters)


class Machine:
    """A copy of the repository in ``folder/<name>`` that builds against the cache at ``address``.

    A ``stranger`` shares nothing with this machine but interpreters; otherwise the user's own named caches are used, so
    that wheels are downloaded once for all tests. With root's rights, ``other_user`` builds as another user too.
    """

    def __init__(self, folder: Path, name: str, address: str, stranger: bool = False, other_user: bool = False) -> None:
        self.home = folder / name
        self.root = self.home / ("work/checkout" if stranger else "checkout")
        self.store = self.home / "store"
        self.named = self.home / "named" if stranger else _user_cache() / "pants/named_caches"
        self.options = ["--no-pantsd", "--keep-sandboxes=always", f"--local-store-dir={self.store}"]
        self.options += [f"--named-caches-dir={self.named}", "--stats-log", "--remote-cache-read"]
        self.options += [f"--remote-store-address=grpc://{address}", "--cache-content-behavior=validate"]
        self._prefix: list[str] = []
        self._environment = dict(os.environ)
        copy_repository(self.root)
        self._launcher = launcher.command(self.root)
        if stranger:
            self._become_stranger()
        if other_user and os.geteuid() == 0 and shutil.which("setpriv"):
            self._become_other_user()

    def _become_stranger(self) -> None:
        python_39 = subprocess.check_output([str(ROOT / "pants"), "--launcher-python"], cwd=ROOT, text=True)
        known = Path(python_39.strip()).parents[2]
        elsewhere = self.home / "launcher" / known.name
        elsewhere.parent.mkdir(parents=True)
        elsewhere.symlink_to(known)
        python = Path(sys.executable).resolve()
        self._environment = {
            "HOME": str(self.home),
            "PATH": f"{self.home}/bin:/usr/bin:/bin",
            "LANG": "C",
            "TZ": "Asia/Tokyo",
            "KERNELWRIGHT_PANTS_HOME": str(elsewhere.parent),
            "PYENV_ROOT": str(self.home / "none"),
            **launcher.environment(),
        }
        (self.home / "bin").mkdir()
        (self.home / "bin" / python.name).symlink_to(python)

    def _become_other_user(self) -> None:
        # It may read what root may, as interpreters may lie below root's home. Pex asks access(2), which ignores
        # capabilities of other users than root unless told otherwise.
        capabilities = "+dac_read_search,+dac_override"
        self._prefix = ["setpriv", f"--reuid={_USER}", f"--regid={_USER}", "--clear-groups"]
        self._prefix += [f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}"]
        self._prefix += ["--securebits=+no_setuid_fixup"]
        self._environment.update(USER="stranger", LOGNAME="stranger")
        subprocess.run(["chown", "-R", f"{_USER}:{_USER}", str(self.home)], check=True)

    def write(self, path: str, text: str) -> None:
        """Write a file of the checkout."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def pants(self, *arguments: str, timeout: float = 1800) -> Build:
        """Run Pants without a daemon; ``<home>.log`` shows how far it is."""
        command = [*self._prefix, self._launcher, *self.options, *arguments]
        log = self.home.with_suffix(".log")
        start = time.monotonic()
        with log.open("wb") as output:
            done = subprocess.run(
                command, cwd=self.root, env=self._environment, stdout=output, stderr=output, timeout=timeout
            )
        wall = time.monotonic() - start
        text = log.read_text(errors="replace")
        for sandbox, _ in _KEPT.findall(text):
            shutil.rmtree(sandbox, ignore_errors=True)
        return Build.read(done.returncode, text, wall)

    def outputs(self, folder: str) -> dict[str, bytes]:
        """The files below a folder of ``dist``."""
        root = self.root / "dist" / folder
        return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def size_of(folder: Path) -> int:
    """Bytes on disk below a folder."""
    return sum(path.stat().st_blocks * 512 for path in folder.rglob("*") if path.is_file())


def _user_cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
