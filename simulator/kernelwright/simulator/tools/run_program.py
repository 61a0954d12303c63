"""The command ``run``: a Python program whose launches on simulated devices use the command line's options."""

from __future__ import annotations

import argparse
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

from kernelwright.simulator.checks.options import Checks
from kernelwright.simulator.errors import SimulatorError
from kernelwright.simulator.run.device import configure

CHECKS = ("uninitialised", "races", "waits")
FAILED = 1


def add_run(commands: Any) -> None:
    """Add the command to a parser's subcommands."""
    run = commands.add_parser("run", help="run a Python program with options for its launches on simulated devices")
    run.add_argument("--check", action="append", choices=[*CHECKS, "all"], default=[], help="a check; may be repeated")
    run.add_argument(
        "--seeds", type=_count, default=0, metavar="N", help="repeat each launch in N random orders of waves (0 to N-1)"
    )
    run.add_argument("--processes", type=_count, default=1, metavar="N", help="processes that share a launch")
    run.add_argument(
        "--instruction-limit", type=_count, metavar="N", help="most instructions of one launch (default: any number)"
    )
    run.add_argument("program", type=Path, metavar="PROGRAM.py")
    run.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENT")
    run.set_defaults(run=_run)


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not an integer from 1 on")
    return int(text)


def _run(given: Any) -> int:
    """Run the program. Returns its own status, or 1 if it ends with an exception."""
    chosen = CHECKS if "all" in given.check else given.check
    try:
        checks = Checks(**dict.fromkeys(chosen, True), seeds=tuple(range(given.seeds)))
    except ValueError as error:
        raise SimulatorError(f"--seeds {given.seeds}: {error} (--check)") from error
    if not given.program.is_file():
        raise SimulatorError(f"{given.program} is not a file")
    argv, path = sys.argv, sys.path
    sys.argv, sys.path = [str(given.program), *given.arguments], [str(given.program.resolve().parent), *sys.path]
    try:
        with configure(checks=checks, processes=given.processes, instruction_limit=given.instruction_limit):
            runpy.run_path(str(given.program), run_name="__main__")
    except Exception:
        traceback.print_exc()
        return FAILED
    finally:
        sys.argv, sys.path = argv, path
    return 0
