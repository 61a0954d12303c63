"""Resources of an AMD kernel, read from the compiler's device assembly and the metadata at its end."""

from __future__ import annotations

import re

from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.resources.amd.metadata import ReportError, kernels_of, number

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
# RDNA has no accumulation registers, so the compiler omits the key.
_OPTIONAL = {"agpr"}
_MATRIX = re.compile(r"^\s+v_(?:mfma|smfmac|wmma|swmmac)_", re.MULTILINE)


def read_report(data: bytes, expects: Expectation) -> dict[str, int]:
    """Return registers, bytes, spills, wave and block size, matrix instructions and code of a kernel's assembly.

    ``vgpr`` counts architectural and accumulation registers together. For several device functions, each number is the
    maximum; ``code_bytes`` is their sum. Raises ReportError if a number is missing or the functions are not what is
    expected: CK Tile compiles configurations that an architecture lacks to kernels without a matrix instruction, which
    compute nothing.
    """
    text = data.decode()
    kernels = kernels_of(text, expects.helpers)
    if len(kernels) != expects.device_kernels:
        listing = f"found {len(kernels)}: {', '.join(kernels)}"
        raise ReportError(f"expected {_count(expects.device_kernels)} in the assembly, {listing}")
    report = {name: max(_number(entry, name, key) for entry in kernels.values()) for name, key in _METADATA.items()}
    report["matrix_instructions"] = len(_MATRIX.findall(text))
    report["code_bytes"] = sum(_code_bytes(text, symbol.removesuffix(".kd")) for symbol in kernels)
    if expects.matrix_instructions and report["matrix_instructions"] == 0:
        raise ReportError(f"{', '.join(kernels)} has no matrix instruction: this architecture cannot run its warp tile")
    return report


def _count(kernels: int) -> str:
    return "one kernel" if kernels == 1 else f"{kernels} kernels"


def _code_bytes(text: str, function: str) -> int:
    """Return the code size that the compiler notes after a function."""
    match = re.search(
        rf"^\s*\.size\s+{re.escape(function)},.*?^; codeLenInByte = (\d+)$", text, re.MULTILINE | re.DOTALL
    )
    if match is None:
        raise ReportError(f"the assembly has no code length of {function}")
    return int(match.group(1))


def _number(metadata: str, name: str, key: str) -> int:
    return number(metadata, key, 0 if name in _OPTIONAL else None)
