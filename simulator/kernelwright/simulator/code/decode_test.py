from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.simulator.code.decode import decode, decode_one, known_names
from kernelwright.simulator.code.encodings import encoding_of, encodings
from kernelwright.simulator.code.instruction import File, Operand
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.errors import ObjectError, Unmodelled
from kernelwright.simulator.testing.instructions import encode

# Machine code as LLVM's assembler writes it.
KNOWN = [
    ("gfx942", "000081bf", "s_endpgm"),
    ("gfx942", "00008abf", "s_barrier"),
    ("gfx942", "7fc08cbf", "s_waitcnt simm16:49279"),
    ("gfx942", "ff0080be78563412", "s_mov_b32 sdst=s0, ssrc0=305419896"),
    ("gfx942", "0202027e", "v_mov_b32 vdst=v1, src0=s2"),
    ("gfx942", "02070268", "v_add_u32 vdst=v1, src0=v2, vsrc1=v3"),
    ("gfx942", "1000fed901000002", "ds_read_b128 vdst=v[2:5], addr=v1 offset0:16"),
    ("gfx1100", "0000b0bf", "s_endpgm"),
    ("gfx1100", "0000bdbf", "s_barrier"),
    ("gfx1100", "07fc89bf", "s_waitcnt simm16:64519"),
    ("gfx1201", "0000c6bf", "s_wait_dscnt"),
    ("gfx1201", "c14e80be", "s_barrier_signal sdst=s0, ssrc0=-1"),
    ("gfx1201", "ffff94bf", "s_barrier_wait simm16:65535"),
]


@pytest.mark.parametrize(("arch", "code", "text"), KNOWN)
def test_known_machine_code(arch: str, code: str, text: str) -> None:
    instruction = decode_one(bytes.fromhex(code), TARGETS[arch], 0)
    assert str(instruction) == text
    assert instruction.size == len(code) // 2


def test_constants() -> None:
    def first(value: object) -> Operand:
        code = encode("gfx942", "SOP1", "s_mov_b32", sdst="s0", ssrc0=value)
        return decode_one(code, TARGETS["gfx942"], 0).operands["ssrc0"]

    for value in (0, 64, -1, -16, 1.0, -4.0, 0.5):
        operand = first(value)
        assert operand.file is File.INLINE and operand.value == value
    assert first(65).file is File.LITERAL and first(65).value == 65
    assert first(0.1).word() == 0x3DCCCCCD


def test_a_short_instruction_before_a_matrix_one_is_not_swallowed() -> None:
    """A scaled MFMA is a prefix and an MFMA; the tables' prefix matches more than it should."""
    short = encode("gfx950", "VOP3P", "v_pk_fma_f32", vdst="v0", src0="v2", src1="v4", src2="v6")
    matrix = encode("gfx950", "VOP3P_MFMA", "v_mfma_f32_32x32x64_f8f6f4", vdst="v0", src0="v16", src1="v24", src2="v0")
    names = [instruction.name for instruction in decode(short + matrix, TARGETS["gfx950"], 0)]
    assert names == ["v_pk_fma_f32", "v_mfma_f32_32x32x64_f8f6f4"]


def test_halves_of_registers() -> None:
    """RDNA's 16-bit instructions name upper halves by bit 7 of a short field, and by opsel in VOP3."""
    code = encode("gfx1100", "VOP1", "v_cvt_f16_f32", vdst="v145", src0="v20")
    assert str(decode_one(code, TARGETS["gfx1100"], 0).operands["vdst"]) == "v17.h"
    code = encode("gfx1100", "VOP3", "v_add_f16", vdst="v145", src0="v20", src1="v130", opsel=0b1001)
    operands = decode_one(code, TARGETS["gfx1100"], 0).operands
    assert [str(operands[key]) for key in ("vdst", "src0", "src1")] == ["v145.h", "v20.h", "v130"]


def test_dual_instructions_have_two_parts() -> None:
    fields: dict[str, Any] = {
        "opx": "v_dual_mov_b32",
        "opy": "v_dual_add_f32",
        "vdstx": "v2",
        "srcx0": "v4",
        "vsrcx1": "v0",
    }
    code = encode("gfx1100", "VOPD", "", **fields, vdsty=5 >> 1, srcy0="s3", vsrcy1="v7")
    instruction = decode_one(code, TARGETS["gfx1100"], 0)
    assert [part.name for part in instruction.parts] == ["v_mov_b32", "v_add_f32"]
    assert str(instruction.parts[1].operands["src0"]) == "s3" and instruction.parts[1].operands["vdst"].index == 5


@pytest.mark.parametrize("arch", TARGETS)
@given(st.binary(min_size=16, max_size=16))
@settings(deadline=None, max_examples=100)
def test_any_bytes_are_an_instruction_or_refused(arch: str, data: bytes) -> None:
    try:
        instruction = decode_one(data, TARGETS[arch], 0)
    except Unmodelled as error:
        assert arch in error.reason or "literal" in error.reason
    else:
        kinds = {"v", "s", "ds", "flat", "global", "scratch", "buffer", "tbuffer"}
        assert instruction.size in (4, 8, 12, 16) and instruction.name.partition("_")[0] in kinds


def test_where_there_is_no_instruction() -> None:
    for at in (2, 4):
        with pytest.raises(ObjectError, match="there is no instruction at"):
            decode_one(bytes(4), TARGETS["gfx942"], at)


@pytest.mark.parametrize("tables", ["cdna", "rdna3", "rdna4"])
def test_every_instruction_of_a_family_is_found_by_its_bits(tables: str) -> None:
    """The encoding with each of its opcodes, and nothing else set, is recognised as one that has the opcode."""
    recognised = 0
    for encoding in encodings(tables):
        fields = dict(encoding._fields)
        if "op" not in fields or encoding.__name__ == "VOP3PX2":
            continue
        for op in fields["op"].allowed or ():
            word = int(op.value) << fields["op"].lo
            for field in fields.values():
                if type(field).__name__ == "FixedBitField":
                    word |= field.default << field.lo
            word |= 0xF9 if "SDWA" in encoding.__name__ else 0xFA if "DPP16" in encoding.__name__ else 0
            same = encoding_of(word, tables)
            assert same is encoding or op in dict(same._fields)["op"].allowed, f"{encoding.__name__} {op.name}"
            recognised += 1
    assert recognised > 500


def test_names_by_family() -> None:
    names = known_names(TARGETS["gfx1201"])
    assert "global_load_b128" in names["GLOBAL"] and "v_wmma_f32_16x16x16_f16" in names["VOP3P"]
    assert "v_add_f32" in names["VOPD"]
