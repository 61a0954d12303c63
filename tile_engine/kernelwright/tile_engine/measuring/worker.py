"""The child process: measures what a JSON request on standard input says, one JSON line for each event.

Events are ``{"begin": IDENTITY}`` before launches of a kernel, and a report of
:class:`kernelwright.tile_engine.measuring.measure.Measurement` for each kernel. Who reads the lines knows which kernel
a hang or a crash belongs to. A process that ends by itself after a report leaves the other kernels to the next one.
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
    """Read the request, measure, end."""
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
    """The request on standard input, and what writes a line; what others print goes to standard error from now on."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # a run that is killed leaves no launch behind
    request = json.load(sys.stdin)
    lines = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a kernel prints is no line of ours
    ours = os.getpid()

    def say(event: dict[str, Any]) -> None:
        if os.getpid() != ours:
            os._exit(1)  # a copy of this process, made by a kernel that forked and returned twice
        print(json.dumps(event), file=lines, flush=True)

    return request, say


def spoils(device: Device, report: Report) -> bool:
    """Whether no kernel can be measured in this process any more: a GPU's context keeps the error of a launch."""
    return device.kind in ("cuda", "hip") and report["status"] == FAILED


if __name__ == "__main__":
    main()
