"""A program between us and a command: it adopts processes that the command starts in other sessions, and ends them all.

Started by :class:`kernelwright.codegen.supervision.supervised.Supervised` with the number of a socket: it reads one
request there, reports ``{"pid": N}`` when the command runs, and how it ended when none of its processes runs any more.
The command ends when the other side of the socket does. Each command, including every compiler, waits for this program,
so it imports only built-in modules: signal and ctypes alone would double its 10 ms of processor time (enumerations,
types of C).
"""

# ruff: noqa: SIM105
from __future__ import annotations

import _ctypes
import _signal  # type: ignore[import-not-found]
import errno
import marshal
import os
import select
import sys
import time

_QUICK_ROUNDS = 100
_PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
_ENDING_S = 10.0  # a process that waits for a device or a disk cannot be ended meanwhile
_PARENT_S = 5.0  # copies of the socket in the parent's other children hide that it was killed


def main(control: int) -> None:
    """Run the command requested through the socket ``control``."""
    os.set_inheritable(control, False)
    argv, env, cwd = _request(control)
    try:
        awake = _adopt_orphans()
        command = _start(argv, env, cwd)
    except OSError as error:
        _say(control, f'{{"error": {error.errno or 0}}}')
        return
    _say(control, f'{{"pid": {command}}}')
    silence = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):  # otherwise its own copies would keep open the pipes that the command closes
        os.dup2(silence, stream)
    children = _Children()
    parent = os.getppid()
    events = select.poll()  # select() takes no descriptor above 1023, and our parent may have as many
    for descriptor in (control, awake):
        events.register(descriptor, select.POLLIN)
    while command not in children.ended:
        ready = [descriptor for descriptor, _ in events.poll(_PARENT_S * 1000)]
        if control in ready or os.getppid() != parent:
            break
        if awake in ready:
            os.read(awake, 4096)
        children.reap()
    left = children.end(_ENDING_S)
    status = children.ended.get(command, "null")
    took = f'"cpu_s": {children.cpu_s}, "memory_kb": {children.memory_kb}'
    _say(control, f'{{"status": {status}, {took}, "left": {left}}}')


def _request(control: int) -> tuple[list[str], dict[str, str] | None, str | None]:
    """Read command, environment in place of ours, and folder: their length in 8 bytes, then their bytes."""
    data = b""
    while len(data) < 8 or len(data) < 8 + int.from_bytes(data[:8], "little"):
        more = os.read(control, 1 << 16)
        if not more:
            sys.exit(1)  # the requester was killed
        data += more
    request: tuple[list[str], dict[str, str] | None, str | None] = marshal.loads(data[8:])
    return request


def _say(control: int, message: str) -> None:
    try:
        os.write(control, message.encode() + b"\n")
    except OSError:
        pass  # the listener was killed


def _adopt_orphans() -> int:
    """Become the parent of every orphan below us; returns a descriptor that is readable when a child has ended."""
    prctl = _ctypes.dlsym(_ctypes.dlopen(None, 0), "prctl")  # type: ignore[arg-type]
    if _ctypes.call_function(prctl, (_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)):
        raise OSError(errno.EINVAL, "prctl(PR_SET_CHILD_SUBREAPER)")  # Linux before 3.4
    awake, waker = os.pipe()
    os.set_blocking(waker, False)
    _signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    _signal.signal(_signal.SIGCHLD, lambda number, frame: None)  # our parent may ignore it
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT):
        _signal.signal(number, _signal.SIG_IGN)  # they are meant for our parent, which ends us
    _signal.pthread_sigmask(_signal.SIG_SETMASK, [])
    return awake


def _start(argv: list[str], env: dict[str, str] | None, cwd: str | None) -> int:
    """Start the command and return its process id; it leads a session of its own, with no signal ignored or blocked."""
    if cwd is not None:
        os.chdir(cwd)
    if env is not None:
        os.environ.clear()
        os.environ.update(env)
    every = [number for number in _signal.valid_signals() if number not in (_signal.SIGKILL, _signal.SIGSTOP)]
    return os.posix_spawnp(argv[0], argv, os.environ, setsid=True, setsigmask=[], setsigdef=every)


class _Children:
    """The processes below us, all of which eventually become our children."""

    def __init__(self) -> None:
        self.ended: dict[int, int] = {}
        self.cpu_s = 0.0
        self.memory_kb = 0

    def reap(self) -> bool:
        """Reap those that have ended; returns whether any is left."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if not pid:
                return True
            self.ended[pid] = status
            self.cpu_s += usage.ru_utime + usage.ru_stime
            self.memory_kb = max(self.memory_kb, usage.ru_maxrss)

    def end(self, limit_s: float) -> list[int]:
        """Kill every process below us until there is none; returns those left after ``limit_s`` seconds."""
        deadline = time.monotonic() + limit_s
        pause_s = 0.0
        while self.reap():
            below = _descendants(os.getpid())
            if time.monotonic() > deadline:
                return below
            _kill(below)
            for _ in range(_QUICK_ROUNDS):  # faster than processes that each start the next one and end
                if not self.reap():
                    break
                _kill(_adopted())
            time.sleep(pause_s)
            pause_s = min(pause_s + 0.001, 0.05)
        return []


def _kill(processes: list[int]) -> None:
    for pid in processes:
        try:
            os.kill(pid, _signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass  # it has ended, or runs as another user: then it counts as left


def _adopted() -> list[int]:
    """Our own children; a hundred times faster than :func:`_descendants`. Empty if the kernel does not list them."""
    try:
        with open("/proc/thread-self/children", "rb") as listed:
            return [int(pid) for pid in listed.read().split()]
    except OSError:
        return []


def _descendants(ancestor: int) -> list[int]:
    """The processes below one, parents first. A process whose first thread has ended looks wholly ended (state Z)."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as stat:
                    parent = int(stat.read().rpartition(b")")[2].split()[1])
            except OSError:
                continue  # it ended meanwhile
            children.setdefault(parent, []).append(int(name))
    descendants, waiting = [], [ancestor]
    while waiting:
        below = children.get(waiting.pop(), [])
        descendants += below
        waiting += below
    return descendants


if __name__ == "__main__":
    main(int(sys.argv[1]))
