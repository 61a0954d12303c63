"""The command line: modelled instructions, static coverage of kernel libraries, disassembly, programs under checks."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kernelwright.files.commands import ArgumentParser
from kernelwright.simulator.code.object_file import CodeObject, images, read_code_object
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import SimulatorError
from kernelwright.simulator.tools import table
from kernelwright.simulator.tools.coverage import UNDECODED, Gap, gaps, instructions_of
from kernelwright.simulator.tools.disassembly import fields, listing
from kernelwright.simulator.tools.run_program import add_run

OK, FOUND, WRONG = 0, 1, 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0: success; 1: an instruction is not modelled; 2: wrong use or an unreadable file.

    The command ``run`` exits with the status of its program, or with 1 after an exception.
    """
    try:
        given = parser().parse_args(arguments)
    except SystemExit as stop:
        return WRONG if stop.code else OK
    try:
        return int(given.run(given))
    except BrokenPipeError:  # the reader has closed the pipe, like head
        sys.stderr.close()
        return OK
    except (SimulatorError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return WRONG


def parser() -> argparse.ArgumentParser:
    """The arguments of every command."""
    made = ArgumentParser("python -m kernelwright.simulator", description=__doc__)
    commands = made.add_subparsers(required=True, metavar="COMMAND")
    coverage = commands.add_parser("coverage", help="list the static instructions of libraries that are not modelled")
    coverage.add_argument("files", nargs="+", type=Path, metavar="LIBRARY", help="a kernel library or a code object")
    coverage.add_argument("--json", action="store_true", help="print JSON")
    coverage.set_defaults(run=_coverage)
    instructions = commands.add_parser(
        "instructions", help="count the modelled instructions by family and architecture"
    )
    instructions.add_argument("--arch", choices=list(TARGETS), help="list the instructions of one architecture by name")
    instructions.add_argument("--json", action="store_true", help="print JSON")
    instructions.set_defaults(run=_instructions)
    disassemble = commands.add_parser(
        "disassemble", help="print instructions in LLVM's syntax with their pc; clang assembles them to the same bytes"
    )
    disassemble.add_argument("file", type=Path, metavar="LIBRARY", help="a kernel library or a code object")
    disassemble.add_argument("--kernel", default="", metavar="TEXT", help="only functions whose name contains TEXT")
    disassemble.add_argument("--fields", action="store_true", help="with operands by name, as in faults and traces")
    disassemble.set_defaults(run=_disassemble)
    add_run(commands)
    return made


def _objects(file: Path) -> list[CodeObject]:
    try:
        return [read_code_object(image) for image in images(file.read_bytes())]
    except SimulatorError as error:
        raise SimulatorError(f"{file}: {error}") from error


def _coverage(given: Any) -> int:
    summaries = {str(file): _coverage_of(_objects(file)) for file in given.files}
    if given.json:
        print(json.dumps(summaries, indent=2))
    else:
        for file, summary in summaries.items():
            print(
                f"{file}: {summary['instructions']} static instructions in {summary['objects']} code objects, "
                f"{sum(gap['count'] for gap in summary['missing'])} without semantics"
            )
            for gap in summary["missing"]:
                print(f"  {gap['count']:6} x {gap['name']}, first at pc {gap['pc']:#x}: {gap['reason']}")
    return FOUND if any(summary["missing"] for summary in summaries.values()) else OK


def _coverage_of(objects: list[CodeObject]) -> dict[str, Any]:
    total, missing = 0, dict[tuple[str, str], Gap]()
    for code in objects:
        for gap in gaps(code):
            missing.setdefault((gap.name, gap.reason), replace(gap, count=0)).count += gap.count
        if not any(gap.name == UNDECODED for gap in missing.values()):
            total += sum(1 for _ in instructions_of(code))
    return {"objects": len(objects), "instructions": total, "missing": [asdict(gap) for gap in missing.values()]}


def _instructions(given: Any) -> int:
    if given.arch:
        chosen = [row for row in table.rows() if given.arch in row.archs]
        if given.json:
            print(json.dumps([{"family": row.family, "name": row.name, "class": row.kind} for row in chosen], indent=2))
        else:
            for row in chosen:
                print(f"{row.family:8} {row.name:36} {row.kind or '-'}")
        return OK
    summary = table.summary()
    if given.json:
        print(json.dumps(summary, indent=2))
        return OK
    print("family  " + "".join(f"{arch:>12}" for arch in TARGETS) + "    (modelled of known)")
    for family, counts in summary.items():
        cells = (f"{counts[arch][0]} of {counts[arch][1]}" if arch in counts else "-" for arch in TARGETS)
        print(f"{family:8}" + "".join(f"{cell:>12}" for cell in cells))
    return OK


def _disassemble(given: Any) -> int:
    objects = _objects(given.file)
    names = sorted({symbol.name for code in objects for symbol in code.symbols if symbol.function})
    if not any(given.kernel in name for name in names):
        raise SimulatorError(
            f"{given.file}: no function has a name with {given.kernel!r} in it; there are: {', '.join(names) or 'none'}"
        )
    for code in objects:
        shown = {symbol.name for symbol in code.symbols if symbol.function and given.kernel in symbol.name}
        if shown:
            print("\n".join(fields(code, shown) if given.fields else listing(code, shown)))
    return OK
