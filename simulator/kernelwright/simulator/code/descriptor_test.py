from __future__ import annotations

import struct

import pytest

from kernelwright.simulator.code.descriptor import Allocation, read_descriptor
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import ObjectError


def descriptor(rsrc1: int = 0, rsrc2: int = 0, rsrc3: int = 0, properties: int = 0, preload: int = 0) -> bytes:
    """A kernel_descriptor_t (LLVM, AMDGPUUsage), field by field."""
    head = struct.pack("<IIII", 1024, 48, 296, 0) + struct.pack("<q", -0x200) + bytes(20)
    return head + struct.pack("<IIIHHI", rsrc3, rsrc1, rsrc2, properties, preload, 0)


def test_fields_are_where_llvm_puts_them() -> None:
    data = descriptor(
        rsrc1=0xF0 << 12 | 1 << 21 | 1 << 23 | 18 | 4 << 6,
        rsrc2=1 | 9 << 1 | 1 << 7 | 1 << 9 | 1 << 10 | 2 << 11,
        rsrc3=24,
        properties=1 << 0 | 1 << 1 | 1 << 3,
        preload=3 | 2 << 7,
    )
    parsed = read_descriptor(data, "k", 0x1000, TARGETS["gfx942"])
    assert (parsed.lds_bytes, parsed.scratch_bytes, parsed.kernarg_bytes, parsed.entry) == (1024, 48, 296, 0xE00)
    assert parsed.user_sgprs == {"private_segment_buffer": 0, "dispatch_ptr": 4, "kernarg_segment_ptr": 6}
    assert parsed.user_sgpr_count == 9 and parsed.preload == (2, 3)
    assert parsed.workgroup_ids == (True, False, True) and parsed.workgroup_info and parsed.private_segment
    assert parsed.workitem_ids == 3 and parsed.registers == Allocation(100, 52, 48, 152, 100)
    assert parsed.mode == 0xF0 | 1 << 8 | 1 << 9  # denormals kept, DX10_CLAMP, IEEE


def test_gfx12_has_neither_clamp_nor_ieee_bits() -> None:
    data = descriptor(rsrc1=0xC0 << 12 | 1 << 21 | 1 << 23, properties=1 << 10)
    assert read_descriptor(data, "k", 0, TARGETS["gfx1201"]).mode == 0xC0


def test_rdna_has_no_agprs_and_all_sgprs() -> None:
    for arch in ("gfx1100", "gfx1201"):
        parsed = read_descriptor(descriptor(rsrc1=11, rsrc3=63, properties=1 << 10), "k", 0, TARGETS[arch])
        assert parsed.registers == Allocation(96, 0, 106, 96)
        assert str(parsed.registers) == "96 VGPRs and 106 SGPRs"


def test_instructions_name_at_most_256_registers_of_a_kind() -> None:
    assert read_descriptor(descriptor(63, rsrc3=63), "k", 0, TARGETS["gfx942"]).registers.agprs == 256
    parsed = read_descriptor(descriptor(63, properties=1 << 10), "k", 0, TARGETS["gfx1100"])
    assert (parsed.registers.vgprs, parsed.registers.total) == (256, 512)


def test_what_cannot_run_is_refused() -> None:
    with pytest.raises(ObjectError, match="built for wave64; on gfx1100 only wave32"):
        read_descriptor(descriptor(), "k", 0, TARGETS["gfx1100"])
    with pytest.raises(ObjectError, match=r"cut off \(63 bytes\)"):
        read_descriptor(descriptor()[:63], "k", 0, TARGETS["gfx942"])
