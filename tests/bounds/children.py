"""Runs a function on many seeds in a child process, with a limit of processor time for each of them.

The parent watches which seed the child is at. A seed that takes too long, or that ends the child, is reported and costs
one fork; the others run all the same.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

_AT, _SLOWEST, _FAILED = struct.Struct("=q"), struct.Struct("=dq"), struct.Struct("=H")
_AT_OFFSET, _SLOWEST_OFFSET, _FAILED_OFFSET = 0, 8, 24
_TEXT = 4000
_POLL_SECONDS = 0.02
_MOST_FAILURES = 20
_MOST_WAITING = 60.0  # seconds of any time: of a child that waits


@dataclass(frozen=True)
class Report:
    """What became of the seeds.

    :ivar tried: how many there were.
    :ivar slowest: seconds of a processor of the slowest one that came back, and which that was.
    :ivar failures: sentences of those that hung, crashed or raised an exception.
    """

    tried: int
    slowest: float
    slowest_seed: int
    failures: tuple[str, ...]


def run_each(function: Callable[[int], object], seeds: range, seconds: float) -> Report:
    """``function`` of every seed, each for at most so many seconds of a processor."""
    with mmap.mmap(-1, _FAILED_OFFSET + _FAILED.size + _TEXT) as shared:
        _AT.pack_into(shared, _AT_OFFSET, 0)
        failures: list[str] = []
        while _at(shared) < len(seeds) and len(failures) < _MOST_FAILURES:
            why = _watch(function, seeds, shared, seconds)
            if why is not None:
                failures.append(f"seed {seeds[_at(shared)]}: {why}")
                _AT.pack_into(shared, _AT_OFFSET, _at(shared) + 1)
        slowest, seed = _SLOWEST.unpack_from(shared, _SLOWEST_OFFSET)
        return Report(_at(shared), slowest, seed, tuple(failures))


def _at(shared: mmap.mmap) -> int:
    at: int = _AT.unpack_from(shared, _AT_OFFSET)[0]
    return at


def _work(function: Callable[[int], object], seeds: range, shared: mmap.mmap) -> None:
    for index in range(_at(shared), len(seeds)):
        _AT.pack_into(shared, _AT_OFFSET, index)
        began = time.process_time()
        try:
            function(seeds[index])
        except Exception:  # every exception is a finding
            text = traceback.format_exc().encode()[-_TEXT:]
            _FAILED.pack_into(shared, _FAILED_OFFSET, len(text))
            shared[_FAILED_OFFSET + _FAILED.size : _FAILED_OFFSET + _FAILED.size + len(text)] = text
            os._exit(1)
        took = time.process_time() - began
        if took > _SLOWEST.unpack_from(shared, _SLOWEST_OFFSET)[0]:
            _SLOWEST.pack_into(shared, _SLOWEST_OFFSET, took, seeds[index])
    _AT.pack_into(shared, _AT_OFFSET, len(seeds))


def _busy(child: int) -> float:
    """Seconds of a processor that a process has had."""
    fields = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _watch(function: Callable[[int], object], seeds: range, shared: mmap.mmap, seconds: float) -> str | None:
    """One child, until it is through or the first seed that fails: why that one did."""
    _FAILED.pack_into(shared, _FAILED_OFFSET, 0)
    child = os.fork()
    if child == 0:
        try:
            _work(function, seeds, shared)
        finally:
            os._exit(0)
    seen, since, wall = _at(shared), _busy(child), time.monotonic()
    while True:
        gone, status = os.waitpid(child, os.WNOHANG)
        if gone:
            break
        if _at(shared) != seen:
            seen, since, wall = _at(shared), _busy(child), time.monotonic()
        elif _busy(child) - since > seconds or time.monotonic() - wall > _MOST_WAITING:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return f"takes longer than {seconds} s"
        time.sleep(_POLL_SECONDS)
    if _at(shared) == len(seeds):
        return None
    (length,) = _FAILED.unpack_from(shared, _FAILED_OFFSET)
    text = bytes(shared[_FAILED_OFFSET + _FAILED.size :][:length]).decode(errors="replace")
    return text or f"ends the process with status {os.waitstatus_to_exitcode(status)}"
