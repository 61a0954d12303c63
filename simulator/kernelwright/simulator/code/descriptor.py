"""Kernel descriptors: sizes, modes and initial registers of a kernel (LLVM, AMDGPUUsage, "Kernel Descriptor")."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from kernelwright.simulator.code.target import Target
from kernelwright.simulator.errors import ObjectError

DESCRIPTOR_BYTES = 64
_MOST_VECTORS = 256  # registers of one kind that instructions can name
CDNA_SGPRS, RDNA_SGPRS = 102, 106  # scalar operands from these on are FLAT_SCRATCH, VCC, TTMPs, M0, EXEC and so on

# Kernel code properties: user SGPRs in the order that they are set, bit → (what, count).
_USER_SGPRS = (
    (0, "private_segment_buffer", 4),
    (1, "dispatch_ptr", 2),
    (2, "queue_ptr", 2),
    (3, "kernarg_segment_ptr", 2),
    (4, "dispatch_id", 2),
    (5, "flat_scratch_init", 2),
    (6, "private_segment_size", 1),
)


@dataclass(frozen=True)
class Allocation:
    """Number of registers of each kind allocated to a wave, counted from ``v0``, ``a0`` and ``s0``.

    ``total`` counts the vector registers that the descriptor requests. On CDNA, one register file holds the VGPRs and,
    from ``accum_offset`` on, the AGPRs; elsewhere ``accum_offset`` is None. There are at most 102 SGPRs on CDNA and 106
    on RDNA; VCC, M0, EXEC and the like are not among them and always exist.
    """

    vgprs: int
    agprs: int
    sgprs: int
    total: int
    accum_offset: int | None = None

    def __str__(self) -> str:
        """``148 VGPRs, 4 AGPRs (152 vector registers, accum_offset 148) and 96 SGPRs``."""
        shared = f"({self.total} vector registers, accum_offset {self.accum_offset}) "
        agprs = "" if self.accum_offset is None else f", {self.agprs} AGPRs {shared.strip()}"
        return f"{self.vgprs} VGPRs{agprs} and {self.sgprs} SGPRs"


@dataclass(frozen=True)
class KernelDescriptor:
    """One kernel. Sizes in bytes; ``entry`` is a virtual address of the code object.

    ``user_sgprs`` maps an initial value to its first SGPR; ``preload`` is (dword offset, dwords) of kernel arguments
    preloaded into SGPRs. ``mode`` is the MODE register at the start: round and denormal modes in bits 0-7, then
    DX10_CLAMP, IEEE and FP16_OVFL. ``workitem_ids`` is the number of ids among x, y, z in v0. ``registers`` are those
    allocated to a wave.
    """

    name: str
    entry: int
    lds_bytes: int
    scratch_bytes: int
    kernarg_bytes: int
    user_sgprs: dict[str, int]
    user_sgpr_count: int
    preload: tuple[int, int]
    workgroup_ids: tuple[bool, bool, bool]
    workgroup_info: bool
    private_segment: bool
    workitem_ids: int
    mode: int
    registers: Allocation
    dynamic_stack: bool


def read_descriptor(data: bytes, name: str, address: int, target: Target) -> KernelDescriptor:
    """Read the 64 bytes of descriptor ``name`` at virtual ``address``. Raises ObjectError if they cannot be run."""
    if len(data) != DESCRIPTOR_BYTES:
        raise ObjectError(f"kernel {name}: its descriptor is cut off ({len(data)} bytes)")
    lds, scratch, kernarg = struct.unpack_from("<III", data, 0)
    (offset,) = struct.unpack_from("<q", data, 16)
    rsrc3, rsrc1, rsrc2, properties, preload = struct.unpack_from("<IIIHH", data, 44)
    if not target.cdna and not properties >> 10 & 1:
        raise ObjectError(f"kernel {name} was built for wave64; on {target.name} only wave32 is simulated")
    user, at = {}, 0
    for bit, what, count in _USER_SGPRS:
        if properties >> bit & 1:
            user[what] = at
            at += count
    ieee_and_clamp = 0 if target.tables == "rdna4" else (rsrc1 >> 21 & 1) << 8 | (rsrc1 >> 23 & 1) << 9
    return KernelDescriptor(
        name=name,
        entry=address + offset,
        lds_bytes=lds,
        scratch_bytes=scratch,
        kernarg_bytes=kernarg,
        user_sgprs=user,
        user_sgpr_count=rsrc2 >> 1 & 31,
        preload=(preload >> 7, preload & 0x7F),
        workgroup_ids=(bool(rsrc2 >> 7 & 1), bool(rsrc2 >> 8 & 1), bool(rsrc2 >> 9 & 1)),
        workgroup_info=bool(rsrc2 >> 10 & 1),
        private_segment=bool(rsrc2 & 1),
        workitem_ids=(rsrc2 >> 11 & 3) + 1,
        mode=rsrc1 >> 12 & 0xFF | ieee_and_clamp | (rsrc1 >> 26 & 1) << 23,
        registers=_allocation(rsrc1, rsrc3, target),
        dynamic_stack=bool(properties >> 11 & 1),
    )


def _allocation(rsrc1: int, rsrc3: int, target: Target) -> Allocation:
    """The register counts of COMPUTE_PGM_RSRC1 and 3. In wave32 and on CDNA, VGPRs are counted in blocks of 8."""
    total = 8 * ((rsrc1 & 63) + 1)
    if not target.cdna:  # every wave has all SGPRs; the field is reserved
        return Allocation(min(total, _MOST_VECTORS), 0, RDNA_SGPRS, total)
    offset = 4 * ((rsrc3 & 63) + 1)
    sgprs = 16 * ((rsrc1 >> 6 & 15) // 2 + 1)
    return Allocation(
        vgprs=min(total, offset),
        agprs=min(max(0, total - offset), _MOST_VECTORS),
        sgprs=min(sgprs, CDNA_SGPRS),
        total=total,
        accum_offset=offset,
    )
