"""Executes AMD code objects on the CPU: results and instruction counts, never times.

Layers, lowest first; each imports only itself and lower ones: ``errors`` → ``code`` → ``machine`` → ``instructions`` →
``checks`` → ``counting`` → ``run`` → ``tools``. ``testing`` may import all of them and is not shipped. Importing the
package loads no module of it; each name below loads its module on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelwright.simulator.checks.debugging import Debug, Event, Stop, print_to
    from kernelwright.simulator.checks.options import Checks
    from kernelwright.simulator.counting.observer import Counts
    from kernelwright.simulator.errors import Fault, ObjectError, SimulatorError
    from kernelwright.simulator.machine.regions import Buffer
    from kernelwright.simulator.run.device import configure, last_report, last_reports
    from kernelwright.simulator.run.launch import Simulator
    from kernelwright.simulator.run.report import LaunchReport

__all__ = [
    "Buffer",
    "Checks",
    "Counts",
    "Debug",
    "Event",
    "Fault",
    "LaunchReport",
    "ObjectError",
    "Simulator",
    "SimulatorError",
    "Stop",
    "configure",
    "last_report",
    "last_reports",
    "print_to",
]

_MODULES = {
    "Buffer": "machine.regions",
    "Checks": "checks.options",
    "Counts": "counting.observer",
    "Debug": "checks.debugging",
    "Event": "checks.debugging",
    "Fault": "errors",
    "LaunchReport": "run.report",
    "ObjectError": "errors",
    "Simulator": "run.launch",
    "SimulatorError": "errors",
    "Stop": "checks.debugging",
    "configure": "run.device",
    "last_report": "run.device",
    "last_reports": "run.device",
    "print_to": "checks.debugging",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
