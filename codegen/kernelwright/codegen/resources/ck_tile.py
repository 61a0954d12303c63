"""Resources of an AMD kernel, read from the compiler's device assembly and the metadata at its end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.resources.amd.counts import read_counts
from kernelwright.files.counts.instruction_set import instruction_set

_METADATA = {
    "vgpr": "vgpr_count",
    "sgpr": "sgpr_count",
    "agpr": "agpr_count",
    "lds_bytes": "group_segment_fixed_size",
    "scratch_bytes": "private_segment_fixed_size",
    "vgpr_spills": "vgpr_spill_count",
    "sgpr_spills": "sgpr_spill_count",
    "wave_size": "wavefront_size",
    "block_size": "max_flat_workgroup_size",
    "kernarg_bytes": "kernarg_segment_size",
}
# RDNA has no accumulation registers, and the compiler leaves the key out.
_OPTIONAL = {"agpr"}
_MATRIX = re.compile(r"^\s+v_(?:mfma|smfmac|wmma|swmmac)_", re.MULTILINE)
_BLOCK = re.compile(r"^\s*\.amdgpu_metadata$(.*)^\s*\.end_amdgpu_metadata$", re.MULTILINE | re.DOTALL)


class ReportError(ValueError):
    """The assembly does not hold the device functions that are expected."""


def read_report(data: bytes, expects: Expectation) -> dict[str, int]:
    """Registers, bytes, spills, wave and block size, matrix instructions and code of a kernel's assembly.

    ``vgpr`` counts architectural and accumulation registers together. Of several device functions, each number is that
    of the one that uses most; ``code_bytes`` is their sum. Raises ReportError if a number is missing or the functions
    are not what is expected: CK Tile compiles configurations that an architecture lacks to kernels without a matrix
    instruction, which compute nothing.
    """
    text = data.decode()
    kernels = _kernels(text, expects)
    if len(kernels) != expects.device_kernels:
        found = f"found {len(kernels)}: {', '.join(kernels)}"
        raise ReportError(f"expected {_count(expects.device_kernels)} in the assembly, {found}")
    report = {name: max(_number(entry, name, key) for entry in kernels.values()) for name, key in _METADATA.items()}
    report["matrix_instructions"] = len(_MATRIX.findall(text))
    report["code_bytes"] = sum(_code_bytes(text, symbol.removesuffix(".kd")) for symbol in kernels)
    if expects.matrix_instructions and report["matrix_instructions"] == 0:
        raise ReportError(f"{', '.join(kernels)} has no matrix instruction: this architecture cannot run its warp tile")
    return report


def read_counted(
    data: bytes, expects: Expectation, instructions: str, simds: int, resources: dict[str, int]
) -> dict[str, Any]:
    """What the code of a kernel's assembly does: see ``kernelwright.codegen.resources.amd.counts.read_counts``.

    ``instructions`` is the instruction set of the architecture, ``simds`` are those of a compute unit.
    """
    text = data.decode()
    symbols = [symbol.removesuffix(".kd") for symbol in _kernels(text, expects)]
    return read_counts(text, symbols, instruction_set(instructions), resources, simds)


def _kernels(text: str, expects: Expectation) -> dict[str, str]:
    """Metadata of the device functions that count, by symbol."""
    block = _BLOCK.search(text)
    if block is None:
        raise ReportError("no .amdgpu_metadata in the assembly; compile with -S for an AMD GPU")
    return {
        symbol: entry
        for symbol, entry in _entries(block.group(1))
        if not any(helper in symbol for helper in expects.helpers)
    }


def _count(kernels: int) -> str:
    return "one kernel" if kernels == 1 else f"{kernels} kernels"


def _code_bytes(text: str, function: str) -> int:
    """What the compiler notes behind the code of a function."""
    found = re.search(
        rf"^\s*\.size\s+{re.escape(function)},.*?^; codeLenInByte = (\d+)$", text, re.MULTILINE | re.DOTALL
    )
    if found is None:
        raise ReportError(f"the assembly has no code length of {function}")
    return int(found.group(1))


def _entries(metadata: str) -> Iterator[tuple[str, str]]:
    # Kernels are the entries of one list; only their first lines start with a dash at this depth.
    for entry in re.split(r"^  - ", metadata, flags=re.MULTILINE)[1:]:
        for symbol in re.findall(r"^\s*\.symbol:\s*(\S+)", entry, re.MULTILINE):
            yield symbol, entry


def _number(metadata: str, name: str, key: str) -> int:
    found = re.search(rf"^[\s-]*\.{key}:\s*(\d+)$", metadata, re.MULTILINE)
    if found is None:
        if name in _OPTIONAL:
            return 0
        raise ReportError(f"the metadata of the assembly has no .{key}")
    return int(found.group(1))
