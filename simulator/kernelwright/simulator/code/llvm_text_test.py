from __future__ import annotations

import pytest

from kernelwright.simulator.code.decode import decode_one
from kernelwright.simulator.code.llvm_text import assembly, branch_target
from kernelwright.simulator.code.target import TARGETS
from kernelwright.simulator.testing.instructions import encode

# Machine code that clang assembles from this text; tests/gemm/amd/disassembly_test.py has it do so with whole kernels.
KNOWN = [
    ("gfx1201", "0000fcdb73000019", "ds_load_b128 v[25:28], v115"),
    ("gfx942", "0000fed963000006", "ds_read_b128 v[6:9], v99"),
    ("gfx1201", "00007cdb50010000", "ds_store_b128 v80, v[1:4]"),
    ("gfx942", "00001ad842130000", "ds_write_b32 v66, v19"),
    ("gfx942", "00805cdc02007f02", "global_load_dwordx4 v[2:5], v[2:3], off"),
    ("gfx950", "00105de042000080", "buffer_load_dwordx4 v66, s[0:3], 0 offen lds"),
    ("gfx942", "00105ce006020580", "buffer_load_dwordx4 v[2:5], v6, s[20:23], 0 offen"),
    ("gfx942", "00040ac080000000", "s_load_dwordx4 s[16:19], s[0:1], 0x80"),
    ("gfx942", "800085be", "s_mov_b32 s5, 0"),
    ("gfx942", "10c10481", "s_add_i32 s4, s16, -1"),
    ("gfx942", "181602bf", "s_cmp_gt_i32 s24, s22"),
    ("gfx942", "001021b7", "s_addk_i32 s33, 0x1000"),
    ("gfx942", "800004b6", "s_cmpk_lt_u32 s4, 0x80"),
    ("gfx942", "ff7f04b0", "s_movk_i32 s4, 0x7fff"),
    ("gfx942", "00008abf", "s_barrier"),
    ("gfx942", "040082bf", "s_branch 4"),
    ("gfx942", "750085bf", "s_cbranch_scc1 117"),
    ("gfx1201", "020085bf", "s_clause 2"),
    ("gfx1201", "090087bf", "s_delay_alu 9"),
    ("gfx942", "000081bf", "s_endpgm"),
    ("gfx942", "000080bf", "s_nop 0"),
    ("gfx942", "7fc08cbf", "s_waitcnt lgkmcnt(0)"),
    ("gfx1201", "7cc005c40108804001000000", "buffer_load_b128 v[1:4], v1, s[4:7], null offen"),
    ("gfx1201", "7cc005ee0100000001000000", "global_load_b128 v[1:4], v[1:2], off"),
    ("gfx942", "030c027e", "v_cvt_f32_u32_e32 v1, s3"),
    ("gfx1201", "01052e7e", "v_readfirstlane_b32 s23, v1"),
    ("gfx942", "ff02020afeff7f4f", "v_mul_f32_e32 v1, 0x4f7ffffe, v1"),
    ("gfx1201", "460001d5ff00a90100000080", "v_cndmask_b32_e64 v70, 0x80000000, 0, vcc_lo"),
    ("gfx950", "100634d210292ac4", "v_bitop3_b32 v16, v16, v20, v10 bitop3:0x36"),
    ("gfx950", "0d0734d20dc51e0a", "v_bitop3_b32 v13, v13, v98, 7 bitop3:0x78"),
    ("gfx950", "040534d20c073e8a", "v_bitop3_b32 v4, v12, v3, 15 bitop3:0x6c"),
    ("gfx942", "01008cd2c1000100", "v_mbcnt_lo_u32_b32 v1, -1, 0"),
    ("gfx942", "5420b0d31404121c", "v_pk_fma_f32 v[84:85], s[20:21], v[2:3], v[4:5] op_sel:[0,0,1] op_sel_hi:[1,1,0]"),
    ("gfx942", "4448b1d314880218", "v_pk_mul_f32 v[68:69], s[20:21], v[68:69] op_sel:[1,0]"),
    ("gfx942", "6840b1d314a00210", "v_pk_mul_f32 v[104:105], s[20:21], v[80:81] op_sel_hi:[0,1]"),
    ("gfx942", "2200e0d306250202", "v_mfma_f32_32x32x8_bf16 v[34:49], v[6:7], v[18:19], 0"),
    ("gfx942", "1206e8d10a271805", "v_mad_u64_u32 v[18:19], s[6:7], v10, s19, v[70:71]"),
    ("gfx942", "0400c4d0108c0200", "v_cmp_gt_i32_e64 s[4:5], s16, v70"),
    ("gfx942", "1008887d", "v_cmp_gt_i32_e32 vcc, s16, v4"),
    ("gfx1201", "8400887d", "v_cmpx_gt_i32_e32 4, v0"),
    ("gfx1201", "800022ca840e0321", "v_dual_mov_b32 v33, 0 :: v_dual_lshlrev_b32 v2, 4, v135"),
]


@pytest.mark.parametrize(("arch", "code", "text"), KNOWN)
def test_an_instruction_is_spelled_as_llvm_does(arch: str, code: str, text: str) -> None:
    words = bytes.fromhex(code)
    assert assembly(decode_one(words, TARGETS[arch], 0), TARGETS[arch], words, {}) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0xCF70, "s_waitcnt vmcnt(48)"),
        (0x0F70, "s_waitcnt vmcnt(0)"),
        (0xC07F, "s_waitcnt lgkmcnt(0)"),
        (0x0070, "s_waitcnt vmcnt(0) lgkmcnt(0)"),
        (0xCF7F, "s_waitcnt vmcnt(63) expcnt(7) lgkmcnt(15)"),
        (0x1F70, ".long 0xbf8c1f70 // s_waitcnt simm16:8048"),
    ],
)
def test_waits_name_their_counters(value: int, text: str) -> None:
    words = encode("gfx942", "SOPP", "s_waitcnt", simm16=value)
    assert assembly(decode_one(words, TARGETS["gfx942"], 0), TARGETS["gfx942"], words, {}) == text


def test_branches_reach_labels() -> None:
    words = encode("gfx942", "SOPP", "s_cbranch_scc1", simm16=0xFFFE)
    branch = decode_one(bytes(8) + words, TARGETS["gfx942"], 8)
    assert branch_target(branch) == 4
    assert assembly(branch, TARGETS["gfx942"], words, {4: "L_4"}) == "s_cbranch_scc1 L_4"
    assert assembly(branch, TARGETS["gfx942"], words, {}) == "s_cbranch_scc1 65534"


def test_what_is_not_known_is_printed_as_its_words() -> None:
    words = bytes.fromhex("f916167e06060500")  # an SDWA form
    text = assembly(decode_one(words, TARGETS["gfx942"], 0), TARGETS["gfx942"], words, {})
    assert text.startswith(".long 0x7e1616f9, 0x00050606 // v_cvt_f32_f16 ")
