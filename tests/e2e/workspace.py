"""A throw-away copy of the repository with its own Pants daemon, to see what a build really does."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from e2e import launcher
from e2e.launcher import ROOT

__all__ = ["ROOT", "Run", "Workspace", "copy_repository"]
_PIDS = (".pids", ".pants.d/pids")  # of Pants 2.17, and of newer versions
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Run:
    """One Pants call. ``ran`` lists the processes that were really executed, not those a cache answered."""

    exit_code: int
    stdout: str
    stderr: str
    wall_s: float
    cpu_s: float
    ran: tuple[str, ...]


def copy_repository(target: Path) -> None:
    """Copy the tracked and new files of the repository to a folder."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.check_output(listed, cwd=ROOT, text=True).split("\0"):
        source = ROOT / name
        if name and source.is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target / name)


class Workspace:
    """A copy of the tracked and new files of the repository below ``folder``.

    ``launcher`` is the program that runs Pants there. It shares the user's store, so that toolchains are unpacked
    already. ``trace`` records which processes ran, at the price of keeping their folders for a moment. It holds for all
    runs: a daemon whose options change starts again.
    """

    def __init__(self, folder: Path, trace: bool = True) -> None:
        self.root = folder / "workspace"
        self._options = ("--keep-sandboxes=always",) if trace else ()
        copy_repository(self.root)
        self.launcher = launcher.command(self.root)

    def write(self, path: str, text: str) -> None:
        """Write a file of the workspace."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def replace(self, path: str, old: str, new: str) -> None:
        """Change a file of the workspace; ``old`` must be there exactly once."""
        text = (self.root / path).read_text()
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path}"
        (self.root / path).write_text(text.replace(old, new))

    def pants(self, *arguments: str, timeout: float = 3600) -> Run:
        """Run Pants."""
        command = [self.launcher, *self._options, *arguments]
        before = self._daemon_cpu_s()
        own = os.times()
        start = time.monotonic()
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=timeout)
        if (
            "while waiting for pantsd to start" in done.stderr
        ):  # on a busy machine the 60 s that Pants gives it are short
            done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=timeout)
        wall = time.monotonic() - start
        after = os.times()
        client = after.children_user - own.children_user + after.children_system - own.children_system
        kept = re.findall(r"Preserving local process execution dir (\S+) for (.*)", done.stderr)
        for sandbox, _ in kept:
            shutil.rmtree(sandbox, ignore_errors=True)
        ran = tuple(sorted(description.strip().strip('"') for _, description in kept))
        cpu = client + self._daemon_cpu_s() - before
        return Run(done.returncode, done.stdout, done.stderr, wall, cpu, ran)

    def close(self) -> None:
        """Stop the daemon, and those of clients that were killed before they took note of them."""
        for pid in {*self._daemon_pids(), *self._daemons_by_title()}:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)

    def stop(self, by: signal.Signals = signal.SIGTERM) -> None:
        """Stop the daemon and wait until it has ended."""
        for pid in self._daemon_pids():
            with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                os.kill(pid, by)
                while " Z " not in Path(f"/proc/{pid}/stat").read_text():
                    time.sleep(0.05)

    def daemon_memory_mb(self) -> int:
        """Resident megabytes of the daemon."""
        pages = sum(int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in self._daemon_pids())
        return pages * os.sysconf("SC_PAGE_SIZE") >> 20

    def _daemon_pids(self) -> list[int]:
        files = [file for folder in _PIDS for file in (self.root / folder).rglob("pid")]
        return [int(file.read_text()) for file in files if file.read_text().strip().isdigit()]

    def _daemons_by_title(self) -> list[int]:
        title = f"pantsd [{self.root}]".encode()
        pids = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it ended meanwhile
                if (process / "cmdline").read_bytes().startswith(title):
                    pids.append(int(process.name))
        return pids

    def _daemon_cpu_s(self) -> float:
        """User and system seconds of the daemon and of the children it has waited for."""
        total = 0.0
        for pid in self._daemon_pids():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += sum(int(ticks) for ticks in fields[11:15]) / _TICK
        return total
