"""Memory slots: commands that run at once, in any builds on this machine, never need more memory than it has.

The protocol is the script ``slots.sh``, which commands of Pants run too.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SCRIPT = Path(__file__).with_name("slots.sh")
_QUOTED_OR_COMMENT = re.compile(r"""(?P<quoted>"[^"]*"|'[^']*')|(?:^|(?<=\s))#.*""")


def script_without_comments(text: str) -> str:
    """Return the script as commands of Pants pass it in their arguments, which are part of every cache key.

    Without comments, an edited comment recompiles nothing. A ``#`` after a space and outside of quotes begins a
    comment.
    """
    lines = (_QUOTED_OR_COMMENT.sub(lambda match: match["quoted"] or "", line).rstrip() for line in text.splitlines())
    return "".join(f"{line}\n" for line in lines if line)


class MemorySlots:
    """A budget in megabytes shared by all processes that name the same ``folder``."""

    def __init__(self, folder: Path, budget_mb: int) -> None:
        self.folder = folder
        self.budget_mb = budget_mb

    @contextmanager
    def hold(self, memory_mb: int) -> Iterator[int]:
        """Wait until ``memory_mb`` fit and reserve them; yields a file descriptor that keeps them while it is open.

        A child that inherits the descriptor keeps the memory reserved even if this process is killed. Raises OSError if
        the script cannot run, for example for lack of ``flock``.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        name = f"{os.getpid()}-{time.monotonic_ns()}.{memory_mb}"
        new = self.folder / f".{name}"  # the script renames it once it is locked
        descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
        try:
            _run_script("wait", self.folder, memory_mb, self.budget_mb, descriptor, new, keep=(descriptor,))
            yield descriptor
        finally:
            for path in (new, self.folder / name):
                path.unlink(missing_ok=True)
            os.close(descriptor)

    def busy_mb(self) -> int:
        """The megabytes of running holders. Removes the files of ended holders, so only tests may call it."""
        return int(_run_script("busy", self.folder))


def machine_memory_mb(membership: Path = Path("/proc/self/cgroup"), groups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the megabytes of this machine, or the lower limit of its control groups or of ``ulimit -v``.

    ``membership`` lists the control groups of a process as /proc does; ``groups`` is the folder of all groups.
    """
    return int(_run_script("budget", membership, groups))


def available_memory_mb() -> int:
    """Megabytes that this machine can give to new processes without swapping."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        free = next(int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable"))
    return min(free, machine_memory_mb())


def _run_script(mode: str, *arguments: object, keep: tuple[int, ...] = ()) -> str:
    command = ["/bin/sh", "-e", str(SCRIPT), mode, *map(str, arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, pass_fds=keep, check=False)
    if done.returncode != 0:
        raise OSError(f"{SCRIPT.name} {mode} failed with exit code {done.returncode}: {done.stderr.strip()}")
    return done.stdout
