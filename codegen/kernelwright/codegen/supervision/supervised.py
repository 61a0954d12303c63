"""A command under supervision: its output is read within bounds, and everything that it started ends with it."""

from __future__ import annotations

import contextlib
import errno
import json
import marshal
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from kernelwright.codegen.supervision import supervisor
from kernelwright.codegen.supervision.output import Lines, Text

SUPERVISOR = Path(supervisor.__file__)
_ENDING_S = 15.0  # the supervisor gives up after 10 s
_CHUNK = 1 << 16
_CHUNKS = 16  # reads at once: a command may print faster than we read. Pipes hold 64 KB, at most 1 MB.
_LONGEST_S = 3600.0  # epoll refuses more than 24 days


@dataclass(frozen=True)
class End:
    """How a command ended.

    :ivar returncode: its exit code, or minus the signal that ended it, as in :mod:`subprocess`.
    :ivar left: its processes that could not be ended: they wait for a device or a disk, or belong to another user.
    """

    returncode: int
    cpu_s: float = 0.0
    memory_kb: int = 0
    left: tuple[int, ...] = ()


class Supervised:
    """A running command in a session of its own. When the block is left, nothing that it started still runs.

    That includes processes in other sessions, daemons, stopped ones and those that ignore signals; they are also ended
    if we are killed. Standard output and error are read by :meth:`wait`, into ``out`` and ``err``. OSError if the
    command cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path | None = None,
        env: Mapping[str, str] | None = None,
        stdin: IO[Any] | int = subprocess.DEVNULL,
        kept: Collection[int] = (),
        out: Text | Lines | None = None,
    ) -> None:
        """``env`` replaces our environment; ``kept`` are descriptors that the command inherits."""
        self.out: Text | Lines = Text() if out is None else out
        self.err = Text()
        self.pid: int | None = None
        self.ended: End | None = None
        self._error: OSError | None = None
        self._messages = Lines()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._supervisor = subprocess.Popen(
                [sys.executable, "-I", "-S", str(SUPERVISOR), str(theirs.fileno())],
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=(*kept, theirs.fileno()),
                start_new_session=True,
            )
        assert self._supervisor.stdout and self._supervisor.stderr
        self._pipes = {self._supervisor.stdout: self.out, self._supervisor.stderr: self.err}
        self._selector = selectors.DefaultSelector()
        for pipe in self._pipes:
            os.set_blocking(pipe.fileno(), False)
            self._selector.register(pipe, selectors.EVENT_READ)
        self._selector.register(self._control, selectors.EVENT_READ)
        try:
            folder = None if cwd is None else str(cwd)
            asked = marshal.dumps(([*map(str, argv)], None if env is None else dict(env), folder))
            with contextlib.suppress(BrokenPipeError):  # the command could not start, and its standard error says why
                self._control.sendall(len(asked).to_bytes(8, "little") + asked)
            while self.pid is None and self.ended is None and self._error is None:
                self.step()
            if self._error is not None:
                raise self._error
            if self.pid is None:
                raise OSError(errno.ECHILD, f"{sys.executable} does not run {SUPERVISOR.name}: {self.err}")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Supervised:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def step(self, timeout_s: float | None = None) -> None:
        """Read the available output, waiting for it for at most ``timeout_s`` seconds."""
        longest_s = None if timeout_s is None else min(timeout_s, _LONGEST_S)
        for key, _ in self._selector.select(longest_s):
            if key.fileobj is self._control:
                self._hear()
            else:
                self._read(key.fileobj)

    def wait(self, timeout_s: float) -> End | None:
        """Return how the command ended; None if it still runs after ``timeout_s`` seconds."""
        deadline = time.monotonic() + timeout_s
        while self.ended is None and (left_s := deadline - time.monotonic()) > 0:
            self.step(left_s)
        return self.ended

    def end(self) -> None:
        """Ask for the command to be ended, from any thread; :meth:`wait` returns once it has."""
        with contextlib.suppress(OSError):  # the command has ended
            self._control.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ProcessLookupError):
            self._supervisor.send_signal(signal.SIGCONT)  # the command may have stopped it

    def close(self) -> End:
        """End the command if it runs; returns how it ended."""
        if self.ended is None:
            self.end()
            self.wait(_ENDING_S)
        self._supervisor.kill()
        self._supervisor.wait()
        if self.ended is None:  # the supervisor was killed, or made to wait for ever
            self._end_session()
            self.ended = End(-signal.SIGKILL, left=(self.pid,) if self.pid and _is_alive(self.pid) else ())
        self._selector.close()
        self._control.close()
        for stream in (self._supervisor.stdout, self._supervisor.stderr):
            assert stream
            stream.close()
        return self.ended

    def _hear(self) -> None:
        try:
            data = self._control.recv(_CHUNK)
        except ConnectionResetError:
            data = b""
        self._messages.add(data)
        while (line := self._messages.next()) is not None:
            message = json.loads(line)
            if "error" in message:
                self._error = OSError(message["error"], os.strerror(message["error"]))
            elif "pid" in message:
                self.pid = message["pid"]
            else:
                self._finish(message)
        if not data and self.ended is None:
            self._finish({"status": None, "cpu_s": 0.0, "memory_kb": 0, "left": []})

    def _finish(self, message: Mapping[str, Any]) -> None:
        """Record the end, and read what was printed before it. Another process may still hold the pipes."""
        self._selector.unregister(self._control)
        if message["status"] is None:
            self._end_session()
        for pipe in list(self._pipes):
            self._read(pipe)
        code = -signal.SIGKILL if message["status"] is None else os.waitstatus_to_exitcode(message["status"])
        self.ended = End(code, round(message["cpu_s"], 3), message["memory_kb"], tuple(message["left"]))

    def _read(self, pipe: Any) -> None:
        for _ in range(_CHUNKS if pipe in self._pipes else 0):  # _finish() has read some pipes to the end
            try:
                data = os.read(pipe.fileno(), _CHUNK)
            except BlockingIOError:
                return
            if not data:
                del self._pipes[pipe]
                self._selector.unregister(pipe)
                return
            self._pipes[pipe].add(data)

    def _end_session(self) -> None:
        """End at least the command's own process group, without its supervisor."""
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            deadline = time.monotonic() + _ENDING_S
            while _is_alive(self.pid) and time.monotonic() < deadline:
                time.sleep(0.01)


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False
