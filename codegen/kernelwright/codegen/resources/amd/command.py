"""Counts a kernel as a command of its library's plan: assembly to a JSON file.

``python -m kernelwright.codegen.resources.amd.command ASSEMBLY OUTPUT INSTRUCTIONS SIMDS [HELPER…]``. INSTRUCTIONS is
the instruction set, SIMDS the number of SIMDs of a compute unit; device functions whose symbols contain a HELPER are
left out. It imports as little as possible: builds run it for each kernel, and again if one of its files changes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from kernelwright.codegen.resources.amd.assembly import AssemblyError
from kernelwright.codegen.resources.amd.counts import read_counts
from kernelwright.codegen.resources.amd.metadata import ReportError, kernels_of, number
from kernelwright.files.counts.instruction_set import instruction_set


def counts_text(assembly: str, instructions: str, simds: int, helpers: Sequence[str] = ()) -> str:
    """Return the JSON text of :func:`kernelwright.codegen.resources.amd.counts.read_counts`.

    ReportError or AssemblyError for an assembly without a device function, or without one of its numbers.
    """
    kernels = kernels_of(assembly, helpers)
    if not kernels:
        raise ReportError("the assembly has no device function to count")
    block_size = max(number(entry, "max_flat_workgroup_size") for entry in kernels.values())
    symbols = [symbol.removesuffix(".kd") for symbol in kernels]
    counts = read_counts(assembly, symbols, instruction_set(instructions), block_size, simds)
    return json.dumps(counts, indent=1, sort_keys=True) + "\n"


def main(arguments: Sequence[str]) -> int:
    """Write the counts; returns 1 after one message for an assembly that cannot be counted."""
    assembly, output, instructions, simds, *helpers = arguments
    try:
        text = counts_text(Path(assembly).read_text(), instructions, int(simds), helpers)
    except (ReportError, AssemblyError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    Path(output).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
