"""Memory slots: commands that run at once, in whatever build on this machine, never need more memory than it has."""

from __future__ import annotations

import fcntl
import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_POLL_S = 0.1
_GROUPS = Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 50  # what the first version of control groups writes for none


class MemorySlots:
    """A budget that all processes share which name the same ``folder``.

    Each holder keeps a file ``<unique>.<megabytes>`` locked; the kernel unlocks it when the process ends, however it
    ends, so nothing needs to be cleaned up. Whoever waits keeps ``gate`` locked, so requests are served in the order in
    which they got there and a large one is not overtaken for ever. A request waits for holders only, and a holder for
    nothing here: there is no deadlock. A request beyond the budget runs alone.
    """

    def __init__(self, folder: Path, budget_mb: int) -> None:
        self.folder = folder
        self.budget_mb = budget_mb

    @contextmanager
    def hold(self, memory_mb: int) -> Iterator[int]:
        """Wait until ``memory_mb`` fit, and keep them; yields a file descriptor that keeps them where it is open.

        A child that inherits the descriptor keeps the memory reserved even if this process is killed.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        with open(self.folder / "gate", "ab") as gate:
            fcntl.flock(gate, fcntl.LOCK_EX)
            while (busy := self.busy_mb()) and busy + memory_mb > self.budget_mb:
                time.sleep(_POLL_S)
            path = self.folder / f"{os.getpid()}-{time.monotonic_ns()}.{memory_mb}"
            descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o644)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield descriptor
        finally:
            path.unlink(missing_ok=True)
            os.close(descriptor)

    def busy_mb(self) -> int:
        """What running holders have; files of holders that ended are removed. To be called with the gate locked."""
        total = 0
        for path in self.folder.glob("*.*"):
            try:
                descriptor = os.open(path, os.O_RDWR)
            except FileNotFoundError:
                continue
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink(missing_ok=True)
            except BlockingIOError:
                total += int(path.suffix[1:])
            finally:
                os.close(descriptor)
        return total


def machine_memory_mb() -> int:
    """Megabytes of this machine, or less: of its control groups, or of the address space that ``ulimit -v`` leaves."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        total = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemTotal"))
    address_space, _ = resource.getrlimit(resource.RLIMIT_AS)
    limits = [total, *group_limits(Path("/proc/self/cgroup").read_text())]
    if address_space != resource.RLIM_INFINITY:
        limits.append(address_space)
    return min(limits) >> 20


def group_limits(membership: str, root: Path = _GROUPS) -> Iterator[int]:
    """Bytes that each control group around a process grants, of both versions; ``membership`` as /proc has it.

    A container may see its own group as the root of the tree, under a name that is not there; then the root counts.
    """
    for line in membership.splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        tree, name = (root / "memory", "memory.limit_in_bytes") if controllers else (root, "memory.max")
        own = tree / group.strip("/")
        for folder in (own, *(parent for parent in own.parents if parent.is_relative_to(tree))):
            try:
                limit = int((folder / name).read_text())
            except (OSError, ValueError):  # no such group, or "max"
                continue
            if limit < _NO_LIMIT:
                yield limit


def available_memory_mb() -> int:
    """Megabytes that this machine can give to new processes without swapping."""
    with open("/proc/meminfo", encoding="ascii") as lines:
        free = next(int(line.split()[1]) // 1024 for line in lines if line.startswith("MemAvailable"))
    return min(free, machine_memory_mb())
