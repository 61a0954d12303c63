"""The child process: measures what a JSON request on standard input says, one JSON line for each event.

Events are ``{"begin": IDENTITY}`` before launches of a kernel, and a report of
:class:`kernelwright.tile_engine.measuring.measure.Measurement` for each kernel. Who reads the lines knows which kernel
a hang or a crash belongs to.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from kernelwright.dispatch import Device, KernelLibrary
from kernelwright.tile_engine.measuring.measure import Measurement
from kernelwright.tile_engine.measuring.settings import Settings
from kernelwright.tile_engine.registry import measurable


def main() -> None:
    """Read the request, measure, end."""
    request = json.load(sys.stdin)
    device = Device(request["device"])
    library = KernelLibrary.load(request["library"])
    operation = measurable(request["operation"])
    measurement = Measurement(library, device, operation, Settings(**request["settings"]))
    for report in measurement.run(request["record"], request["kernels"], lambda kernel: _say({"begin": kernel})):
        _say(report)


def _say(event: dict[str, Any]) -> None:
    print(json.dumps(event), flush=True)


if __name__ == "__main__":
    main()
