"""The child process: measures as a JSON request on standard input says, one JSON line per event.

Events are ``{"begin": IDENTITY}`` before launches of a kernel, and a report of
:class:`kernelwright.tile_engine.measuring.measure.Measurement` for each kernel. So the reader can attribute a hang or a
crash to its kernel. A process that ends by itself after a report leaves the other kernels to the next process.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from kernelwright.dispatch import Device, KernelLibrary
from kernelwright.tile_engine.measuring.measure import FAILED, Measurement, Report
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.registry import measurable

_PR_SET_PDEATHSIG = 1  # of linux/prctl.h


def main() -> None:
    """Read the request, measure, exit."""
    request, say = conversation()
    device = Device(request["device"])
    library = KernelLibrary.load(request["library"])
    operation = measurable(request["operation"])
    measurement = Measurement(library, device, operation, Settings(**request["settings"]))
    for report in measurement.run(request["record"], request["kernels"], lambda kernel: say({"begin": kernel})):
        say(report)
        if spoils(device, report):
            return


def conversation() -> tuple[dict[str, Any], Callable[[dict[str, Any]], None]]:
    """The request on standard input, and a function that writes a line; other output goes to standard error."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # a killed run leaves no launch behind
    request = json.load(sys.stdin)
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # output of a kernel is not one of our lines
    ours = os.getpid()

    def say(event: dict[str, Any]) -> None:
        if os.getpid() != ours:
            os._exit(1)  # a copy of this process, forked by a kernel that returned twice
        print(json.dumps(event), file=lines, flush=True)

    return request, say


def spoils(device: Device, report: Report) -> bool:
    """Whether this process can measure no further kernel: a GPU context keeps the error of a launch."""
    return device.kind in ("cuda", "hip") and report["status"] == FAILED


if __name__ == "__main__":
    main()
