"""Run jobs in forked processes, collect their results and errors, and always end and reap the processes.

The processes also end when this one is killed: Linux sends them SIGKILL then (PR_SET_PDEATHSIG).
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection, Pipe, wait
from typing import Any

from kernelwright.simulator.errors import Fault, SimulatorError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_prctl: Any = ctypes.CDLL(None, use_errno=True).prctl  # looked up before a fork: the lookup takes locks


def run_forked(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """Run each job in a forked copy of this process; returns their results, in order.

    If jobs fault, raises the Fault of the lowest workgroup; otherwise the error of the first job that failed. A process
    that died raises a SimulatorError. All processes have ended when this returns or raises.
    """
    children: list[tuple[int, Connection]] = []
    try:
        for job in jobs:
            children.append(_start(job, [reader for _, reader in children]))
        outcomes = _collect(children)
    finally:
        for pid, reader in children:
            reader.close()
            _end(pid)
    errors = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    faults = [error for error in errors if isinstance(error, Fault)]
    if faults:
        raise min(faults, key=lambda fault: fault.workgroup[::-1])
    if errors:
        raise errors[0]
    return outcomes


def _start(job: Callable[[], Any], others: Sequence[Connection]) -> tuple[int, Connection]:
    reader, writer = Pipe(duplex=False)
    parent = os.getpid()
    pid = os.fork()
    if pid:
        writer.close()
        return pid, reader
    status = 1
    try:
        end_with(parent)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        for other in (*others, reader):
            other.close()
        _send(writer, job)
        status = 0
    finally:
        os._exit(status)  # the parent's clean-up handlers must not run here


def end_with(parent: int) -> None:
    """Have this process killed when its parent ends; ends at once if ``parent`` is no longer its parent.

    The kernel watches the thread that forked; it waits in :func:`run_forked` until all processes have ended.
    """
    if _prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), *[ctypes.c_ulong(0)] * 3):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG) failed")
    if os.getppid() != parent:  # it ended before the request
        os._exit(1)


def _send(writer: Connection, job: Callable[[], Any]) -> None:
    try:
        outcome: Any = job()
    except BaseException as error:
        outcome = error
    try:
        writer.send_bytes(pickle.dumps(outcome))
    except Exception:
        writer.send_bytes(pickle.dumps(SimulatorError(f"{type(outcome).__name__}: {outcome}")))
    writer.close()


def _collect(children: Sequence[tuple[int, Connection]]) -> list[Any]:
    outcomes: dict[int, Any] = {}
    pending = {reader: index for index, (_, reader) in enumerate(children)}
    while pending:
        for reader in wait(list(pending)):
            assert isinstance(reader, Connection)
            index = pending.pop(reader)
            try:
                outcomes[index] = pickle.loads(reader.recv_bytes())
            except EOFError:
                outcomes[index] = SimulatorError("a process of the simulator died without a word (killed?)")
    return [outcomes[index] for index in range(len(children))]


def _end(pid: int) -> None:
    """Kill and reap a process; one that has already ended is only reaped."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass
