"""What is known of LDS addresses, of functions that are written down line by line."""

from __future__ import annotations

import numpy as np
import pytest

from kernelwright.codegen.resources.amd.addresses import lds_bases
from kernelwright.codegen.resources.amd.assembly import function

LANES = np.arange(128).reshape(2, 64)


def bases(body: str) -> dict[str, list[list[int]]]:
    """Of two waves of 64 lanes: address register → its bytes, of each LDS instruction."""
    lines = [line.strip() for line in body.strip().splitlines()]
    text = "\n".join(line if line.startswith(".L") else f"\t{line}" for line in lines)
    statements = function(f"k:\n{text}\n\ts_endpgm\n.Lfunc_end0:\n", "k")
    known = lds_bases(statements, 2, 64)
    return {statements[at].line.name: value.tolist() for at, value in known.items()}


def values(text: str) -> list[list[int]] | None:
    """What v1 holds after lines of arithmetic, as addresses of a read."""
    return bases(f"{text}\nds_read_b32 v9, v1").get("ds_read_b32")


def bitop3(table: int, a: int, b: int, c: int) -> int:
    bits = [table >> (4 * (a >> at & 1) + 2 * (b >> at & 1) + (c >> at & 1)) & 1 for at in range(32)]
    return sum(bit << at for at, bit in enumerate(bits))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("v_lshlrev_b32_e32 v1, 2, v0", LANES * 4),
        ("v_and_b32_e32 v1, 31, v0", LANES & 31),
        ("v_sub_u32_e32 v1, 0, v0", -LANES & 0xFFFFFFFF),
        ("v_bfe_u32 v1, v0, 3, 2", LANES >> 3 & 3),
        ("v_and_or_b32 v1, v0, 7, 64", LANES & 7 | 64),
        ("v_lshl_add_u32 v1, v0, 4, v0", LANES * 17),
        ("v_mad_u32_u24 v1, v0, 0x44, 16", LANES * 68 + 16),
        ("v_xad_u32 v1, v0, 1, 2", (LANES ^ 1) + 2),
        ("v_ashrrev_i32_e32 v1, 31, v0", LANES * 0),
        ("v_mbcnt_lo_u32_b32 v1, -1, 0\nv_mbcnt_hi_u32_b32 v1, -1, v1", LANES % 64),
        ("v_readfirstlane_b32 s4, v0\ns_lshr_b32 s4, s4, 6\nv_mov_b32_e32 v1, s4", LANES // 64),
        ("v_bitop3_b32 v1, v0, 6, 9 bitop3:0x36", np.vectorize(lambda a: bitop3(0x36, a, 6, 9))(LANES)),
        ("v_cmp_gt_u32_e32 vcc, 32, v0\nv_cndmask_b32_e32 v1, 7, v0, vcc", np.where(LANES < 32, LANES, 7)),
        ("v_cmp_lt_i32_e64 s[2:3], -1, v0\nv_cndmask_b32_e64 v1, 7, v0, s[2:3]", LANES),
        (
            "v_readfirstlane_b32 s4, v0\ns_cmp_lt_u32 s4, 64\ns_cselect_b32 s5, 8, s4\nv_mov_b32_e32 v1, s5",
            np.where(LANES < 64, 8, LANES // 64 * 64),
        ),
        (
            "v_readfirstlane_b32 s4, v0\ns_cmp_lg_u32 s4, 0\n"
            "s_cselect_b64 vcc, -1, 0\nv_cndmask_b32_e32 v1, 7, v0, vcc",
            np.where(LANES < 64, 7, LANES),
        ),
        ("v_bfe_i32 v1, v0, 4, 1\nv_and_b32_e32 v1, 0x440, v1", np.where(LANES >> 4 & 1, 0x440, 0)),
        # The carry of a sum or difference is a mask.
        ("v_sub_co_u32_e32 v2, vcc, v0, v3\nv_mov_b32_e32 v1, 5", LANES * 0 + 5),
        ("v_subrev_co_u32 v1, vcc, 16, v0\nv_cndmask_b32_e32 v1, v1, v0, vcc", np.where(LANES < 16, LANES, LANES - 16)),
        ("v_sub_co_u32 v1, vcc, v0, 16\nv_cndmask_b32_e32 v1, v1, v0, vcc", np.where(LANES < 16, LANES, LANES - 16)),
        ("v_sub_co_u32 v1, vcc, v0, 16", (LANES - 16) & 0xFFFFFFFF),
        ("v_add_co_u32 v1, vcc, -16, v0\nv_cndmask_b32_e32 v1, 7, v1, vcc", np.where(LANES < 16, 7, LANES - 16)),
        ("v_mov_b32_e32 v2, 12\nv_mad_u64_u32 v[1:2], s[6:7], v0, 36, v[2:3]", LANES * 36 + 12),
        ("v_mad_u64_u32 v[1:2], s[6:7], v0, s9, v[2:3]", None),
        ("v_mad_i32_i24 v1, v0, -4, 1024", 1024 - LANES * 4),
        ("scratch_store_dword off, v0, off offset:84\nscratch_load_dword v1, off, off offset:84", LANES),
        ("scratch_store_dwordx2 off, v[0:1], off\nscratch_load_dword v1, off, off", LANES),
        (
            "scratch_store_dword off, v0, off offset:84\nscratch_store_dword off, v5, off offset:84\n"
            "scratch_load_dword v1, off, off offset:84",
            None,
        ),
        (
            "scratch_store_dword off, v0, off offset:84\nscratch_store_dword v5, v6, off\n"
            "scratch_load_dword v1, off, off offset:84",
            None,
        ),
        ("scratch_store_byte off, v0, off\nscratch_load_dword v1, off, off", None),
        ("scratch_store_dword off, v0, off\nscratch_load_ubyte v1, off, off", None),
        ("s_cmp_lg_u32 s9, 0\ns_cselect_b32 s5, 8, 4\nv_mov_b32_e32 v1, s5", None),
        ("s_cmp_lg_u32 1, 0\ns_and_b32 s6, s9, 1\ns_cselect_b32 s5, 8, 4\nv_mov_b32_e32 v1, s5", None),
        (
            "v_cmp_gt_u32_e32 vcc_lo, 32, v0\nv_dual_cndmask_b32 v1, 7, v0 :: v_dual_mov_b32 v2, 0",
            np.where(LANES < 32, LANES, 7),
        ),
        (
            "v_readfirstlane_b32 s4, v0\ns_add_co_i32 s5, s4, 8\ns_sub_co_u32 s5, s5, s4\nv_add_nc_u32_e32 v1, s5, v0",
            LANES + 8,
        ),
        ("v_dual_mov_b32 v1, v0 :: v_dual_mov_b32 v0, 0", LANES),
        ("v_mov_b32_e32 v1, s9", None),  # an argument
        ("v_mov_b32_e32 v1, v0\nv_mov_b32_e32 v[0:1], v[2:3]", None),
        ("v_mov_b32_e32 v1, v0\nv_mov_b32_dpp v1, v0 quad_perm:[1,0,3,2]", None),
        ("v_mov_b32_e32 v1, v0\nv_made_up v1, v0", None),
        ("v_mov_b32_e32 v1, v0\nbuffer_load_dword v1, v0, s[4:7], 0 offen", None),
        ("v_mov_b32_e32 v1, v0\nbuffer_store_dword v1, v0, s[4:7], 0 offen", LANES),
        ("v_mov_b32_e32 v1, v0\nds_write_b32 v1, v2", LANES),
        ("v_mov_b32_e32 v1, v0\ns_swappc_b64 s[4:5], s[6:7]", None),
    ],
)
def test_arithmetic(text: str, expected: np.ndarray | None) -> None:
    actual = values(text)
    assert actual == (None if expected is None else np.asarray(expected).tolist())


def test_where_ways_meet_only_what_they_agree_on_is_known() -> None:
    known = bases(
        """
        v_lshlrev_b32_e32 v1, 2, v0
        v_lshlrev_b32_e32 v2, 3, v0
        s_cbranch_scc1 .LBB0_1
        v_lshlrev_b32_e32 v2, 4, v0
        .LBB0_1:
        ds_read_b32 v9, v1
        ds_read_b64 v[10:11], v2
        """
    )
    assert known == {"ds_read_b32": (LANES * 4).tolist()}


def test_what_a_loop_changes_is_not_known_inside() -> None:
    known = bases(
        """
        v_lshlrev_b32_e32 v1, 2, v0
        v_lshlrev_b32_e32 v2, 3, v0
        .LBB0_1:
        ds_read_b32 v9, v1
        ds_read_b64 v[10:11], v2
        v_add_u32_e32 v2, 64, v2
        s_cbranch_scc1 .LBB0_1
        """
    )
    assert known == {"ds_read_b32": (LANES * 4).tolist()}


def test_while_lanes_are_inactive_nothing_is_known_anew() -> None:
    body = """
        v_lshlrev_b32_e32 v1, 2, v0
        s_and_saveexec_b64 s[2:3], vcc
        v_lshlrev_b32_e32 v2, 3, v0
        ds_read_b64 v[10:11], v1
        {back}
        ds_read_b32 v9, v1
        ds_read_b128 v[12:15], v2
        """
    assert bases(body.format(back="s_or_b64 exec, exec, s[2:3]")) == {"ds_read_b32": (LANES * 4).tolist()}
    assert bases(body.format(back="s_mov_b64 exec, -1")) == {"ds_read_b32": (LANES * 4).tolist()}
    assert bases(body.format(back="s_or_b64 exec, exec, s[4:5]")) == {}
    inline = body.replace("s_and_saveexec_b64 s[2:3], vcc", "s_mov_b64 s[2:3], exec\nv_cmpx_le_u32 exec, 1, v5")
    assert bases(inline.format(back="s_mov_b64 exec s[2:3]")) == {"ds_read_b32": (LANES * 4).tolist()}
