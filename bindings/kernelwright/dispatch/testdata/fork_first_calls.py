"""A program that forks while four threads make their first calls: ``fork_first_calls LIBRARY CHILDREN [KIND]``.

It prints the unexpected exit codes of children, and the modules that calls imported. It needs a fresh interpreter,
because first calls happen once: an import that one of them has begun never finishes in a child forked at that moment.
KIND is ``numpy``, ``torch`` (tensors, with our torch operators), ``tensors`` (without the operators) or ``later``
(without the operators, and torch is imported after the dispatcher is made).
"""

from __future__ import annotations

import faulthandler
import importlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from kernelwright.dispatch import Dispatcher, KernelLibrary, KernelwrightError

WINDOW_S, CHILD_S = 0.05, 20.0


def calls(dispatcher: Dispatcher, ones: Callable[..., Any]) -> list[Callable[[], object]]:
    """Calls of threads and children: a result, a result in given memory, a batch of one, a refused problem."""

    def refused() -> None:
        try:
            dispatcher.gemm(ones((2, 3)), ones((2, 3)))
        except KernelwrightError:
            return
        raise AssertionError("2x3 @ 2x3 is no product")

    return [
        lambda: dispatcher.gemm(ones((4, 8)), ones((8, 6))),
        lambda: dispatcher.gemm(ones((3, 8)), ones((8, 6)), out=ones((3, 6))),
        lambda: dispatcher.plan_gemm(ones((5, 8)), ones((8, 6)), out=ones((5, 6)))(
            ones((5, 8)), ones((8, 6)), out=ones((5, 6))
        ),
        refused,
    ]


def child(made: list[Callable[[], object]]) -> int:
    """Fork a process that makes every call and exits with 7."""
    pid = os.fork()
    if pid == 0:
        try:
            for call in made:
                call()
            os._exit(7)
        except BaseException:
            os._exit(2)
    return pid


def ended(pids: list[int]) -> list[int]:
    """Exit codes; -1 for a child that hangs, which is killed after it prints its stack."""
    codes, until = [], time.monotonic() + CHILD_S
    for pid in pids:
        reaped, status = os.waitpid(pid, os.WNOHANG)
        while not reaped and time.monotonic() < until:
            time.sleep(0.001)
            reaped, status = os.waitpid(pid, os.WNOHANG)
        if not reaped:
            os.kill(pid, signal.SIGABRT)
            time.sleep(1)
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
        codes.append(os.waitstatus_to_exitcode(status) if reaped else -1)
    return codes


def main(library: str, children: str, kind: str = "numpy") -> None:
    """Fork ``children`` times in the first 50 ms of the threads' calls; print exit codes other than 7, and imports."""
    dispatcher = Dispatcher([KernelLibrary.load(library)]) if kind == "later" else None
    if kind != "numpy":
        import torch  # pants: no-infer-dep

        if kind == "torch":
            importlib.import_module("kernelwright.torch")  # makes the trials of torch's private interfaces
        ones: Callable[..., Any] = torch.ones
        ones((4, 8))  # what torch itself initialises in its first call is not our concern
    else:
        ones = lambda shape: np.ones(shape, np.float32)  # noqa: E731
    made = calls(dispatcher or Dispatcher([KernelLibrary.load(library)]), ones)
    begin, stop = threading.Barrier(5), threading.Event()
    imported: list[str] = []
    sys.addaudithook(lambda event, about: imported.append(about[0]) if event == "import" else None)

    def work(first: int) -> None:
        begin.wait()
        while not stop.is_set():
            for at in range(len(made)):
                made[(first + at) % len(made)]()

    faulthandler.enable()
    threads = [threading.Thread(target=work, args=(first,), daemon=True) for first in range(4)]
    for thread in threads:
        thread.start()
    begin.wait()
    since, pids = time.monotonic(), []
    for number in range(int(children)):
        pids.append(child(made))
        time.sleep(max(0.0, since + WINDOW_S * (number + 1) / int(children) - time.monotonic()))
    stop.set()
    for thread in threads:
        thread.join()
    print([code for code in ended(pids) if code != 7] + sorted(set(imported)))


if __name__ == "__main__":
    main(*sys.argv[1:])
