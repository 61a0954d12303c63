"""Executes AMD code objects on this machine: results and instruction counts, never times. Needs tinygrad's tables.

Importing the package loads nothing; each name below loads its module when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernelwright.simulator.checks import Checks
    from kernelwright.simulator.debugging import Debug, Event, Stop, print_to
    from kernelwright.simulator.device import configure, last_report, last_reports
    from kernelwright.simulator.errors import Fault, ObjectError, SimulatorError
    from kernelwright.simulator.launch import Buffer, Simulator
    from kernelwright.simulator.report import LaunchReport

__all__ = [
    "Buffer",
    "Checks",
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
    "Buffer": "launch",
    "Checks": "checks",
    "Debug": "debugging",
    "Event": "debugging",
    "Fault": "errors",
    "LaunchReport": "report",
    "ObjectError": "errors",
    "Simulator": "launch",
    "SimulatorError": "errors",
    "Stop": "debugging",
    "configure": "device",
    "last_report": "device",
    "last_reports": "device",
    "print_to": "debugging",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
