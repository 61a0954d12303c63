"""A program that forks while four threads plan: ``fork_under_load LIBRARY CHILDREN``; prints the children that failed.

A process of its own, because locks of a test runner or of a coverage tracer do not survive a fork.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelLibrary

CHILD_SECONDS = 20


def problem(size: int) -> GemmProblem:
    """A distinct problem for every size."""
    return GemmProblem(size, 32, 32, "fp32", layout="rcr")


def child(dispatcher: Dispatcher, number: int) -> int:
    """Fork a process that plans a new problem. Returns its exit code: 7 if it planned, -1 if it hung."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(7 if dispatcher.plan(problem(1_000_000 + number)).kernel.name else 1)
        except BaseException:
            os._exit(2)
    until = time.monotonic() + CHILD_SECONDS
    while time.monotonic() < until:
        reaped, status = os.waitpid(pid, os.WNOHANG)
        if reaped:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.001)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return -1


def main(library: str, children: str) -> None:
    """Fork until a child fails, at most ``children`` times."""
    dispatcher = Dispatcher([KernelLibrary.load(library)])
    stop = threading.Event()

    def plan_on(size: int) -> None:
        while not stop.is_set():
            dispatcher.plan(problem(size))
            size += 4

    for first in range(1, 5):
        threading.Thread(target=plan_on, args=(first,), daemon=True).start()
    failed: list[tuple[int, int]] = []
    for number in range(int(children)):
        code = child(dispatcher, number)
        if code != 7:
            failed.append((number, code))
            break
    stop.set()
    print(failed)


if __name__ == "__main__":
    main(*sys.argv[1:])
