"""Resources of an AMD kernel, read from the compiler's device assembly and the metadata at its end."""

from __future__ import annotations

import re

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
    """Assembly that is not that of one working kernel."""


def read_report(text: str) -> dict[str, int]:
    """Registers, bytes, spills, wave and block size and the number of matrix instructions of the kernel in ``text``.

    ``vgpr`` counts architectural and accumulation registers together. Raises ReportError if there is not exactly one
    kernel, if a number is missing, or if the kernel has no matrix instruction: CK Tile compiles configurations that an
    architecture lacks to kernels that compute nothing.
    """
    block = _BLOCK.search(text)
    if block is None:
        raise ReportError("no .amdgpu_metadata in the assembly; compile with -S for an AMD GPU")
    kernels = re.findall(r"^\s*\.symbol:\s*(\S+)", block.group(1), re.MULTILINE)
    if len(kernels) != 1:
        raise ReportError(f"expected one kernel in the assembly, found {len(kernels)}: {', '.join(kernels)}")
    report = {name: _number(block.group(1), name, key) for name, key in _METADATA.items()}
    report["matrix_instructions"] = len(_MATRIX.findall(text))
    if report["matrix_instructions"] == 0:
        raise ReportError(f"{kernels[0]} has no matrix instruction: this architecture cannot run its warp tile")
    return report


def _number(metadata: str, name: str, key: str) -> int:
    found = re.search(rf"^[\s-]*\.{key}:\s*(\d+)$", metadata, re.MULTILINE)
    if found is None:
        if name in _OPTIONAL:
            return 0
        raise ReportError(f"the metadata of the assembly has no .{key}")
    return int(found.group(1))
