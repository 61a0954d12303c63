"""Resources of an AMD kernel, read from the compiler's device assembly and the metadata at its end."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
_SUM = "_sum.kd"  # the second kernel of a GEMM with split K, which is not what the report is about
_BLOCK = re.compile(r"^\s*\.amdgpu_metadata$(.*)^\s*\.end_amdgpu_metadata$", re.MULTILINE | re.DOTALL)


class ReportError(ValueError):
    """Assembly that is not that of one working kernel."""


def read_report(text: str) -> dict[str, int]:
    """Registers, bytes, spills, wave and block size, matrix instructions and code of the kernel in ``text``.

    ``vgpr`` counts architectural and accumulation registers together. The kernel that adds up the slices of a split K
    is left out. Raises ReportError if there is not exactly one kernel beside it, if a number is missing, or if the
    kernel has no matrix instruction: CK Tile compiles configurations that an architecture lacks to kernels that compute
    nothing.
    """
    block = _BLOCK.search(text)
    if block is None:
        raise ReportError("no .amdgpu_metadata in the assembly; compile with -S for an AMD GPU")
    kernels = {symbol: entry for symbol, entry in _entries(block.group(1)) if not symbol.endswith(_SUM)}
    if len(kernels) != 1:
        raise ReportError(f"expected one kernel in the assembly, found {len(kernels)}: {', '.join(kernels)}")
    ((symbol, entry),) = kernels.items()
    report = {name: _number(entry, name, key) for name, key in _METADATA.items()}
    report["matrix_instructions"] = len(_MATRIX.findall(text))
    report["code_bytes"] = _code_bytes(text, symbol.removesuffix(".kd"))
    if report["matrix_instructions"] == 0:
        raise ReportError(f"{symbol} has no matrix instruction: this architecture cannot run its warp tile")
    return report


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
