"""Lines of assembly as LLVM prints them."""

from __future__ import annotations

import pytest

from kernelwright.codegen.resources.amd.assembly import AssemblyError, function, statement
from kernelwright.files.counts.line import Line, access_of

TEXT = """\
\t.globl\tkernel
kernel:                                 ; @kernel
; %bb.0:
\ts_load_dwordx2 s[2:3], s[0:1], 0x0
.LBB0_1:                                ; =>This Inner Loop Header: Depth=1
\tv_mfma_f32_32x32x8_f16 v[0:15], v[0:1], v[2:3], v[0:15] ; a comment
\ts_cbranch_scc1 .LBB0_1
; %bb.2:
s_mov_b64 exec s[2:3]
\ts_cbranch_scc0 .LBB9_9
\ts_endpgm
\t.section\t.rodata,"a",@progbits
\t\t.amdhsa_next_free_vgpr 8
\t.text
.Lfunc_end0:
\t.size\tkernel, .Lfunc_end0-kernel
other:
\ts_endpgm
.Lfunc_end1:
"""


def test_branches_go_to_lines_of_the_function() -> None:
    goals = [(one.line.name, one.line.goal) for one in function(TEXT, "kernel")]
    names = ["s_load_dwordx2", "v_mfma_f32_32x32x8_f16", "s_cbranch_scc1", "s_mov_b64", "s_cbranch_scc0", "s_endpgm"]
    assert goals == list(zip(names, [None, None, 1, None, None, None], strict=True))
    assert function(TEXT, "kernel")[3].operands == ("exec", "s[2:3]")
    assert [one.line.name for one in function(TEXT, "other")] == ["s_endpgm"]
    with pytest.raises(AssemblyError, match="no function third"):
        function(TEXT, "third")


@pytest.mark.parametrize(
    ("text", "name", "operands", "modifiers"),
    [
        ("ds_write_b128 v75, v[20:23] offset:8192", "ds_write_b128", ("v75", "v[20:23]"), {"offset": "8192"}),
        ("v_cmp_gt_i32_e64 s[2:3], s14, v68", "v_cmp_gt_i32", ("s[2:3]", "s14", "v68"), {}),
        ("v_mfma_f32_32x32x8bf16_1k a[0:15], v[0:1], v[2:3], 0", "v_mfma_f32_32x32x8_bf16", None, {}),
        ("buffer_load_dword v1, s[4:7], 0 offen lds", "buffer_load_dword", None, {"offen": "", "lds": ""}),
        ("s_barrier", "s_barrier", (), {}),
    ],
)
def test_names_operands_and_modifiers(
    text: str, name: str, operands: tuple[str, ...] | None, modifiers: dict[str, str]
) -> None:
    parsed = statement(text)
    assert (parsed.line.name, parsed.modifiers, parsed.opaque) == (name, modifiers, False)
    assert operands is None or parsed.operands == operands
    assert parsed.line.to_lds == ("lds" in modifiers)


def test_what_exchanges_lanes_is_opaque() -> None:
    assert statement("v_mov_b32_dpp v0, v1 quad_perm:[1,0,3,2] row_mask:0xf").opaque
    assert statement("v_add_u32_sdwa v0, v1, v2 dst_sel:DWORD").opaque


def test_dual_issue_is_one_line_of_two_parts() -> None:
    parsed = statement("v_dual_mov_b32 v2, v1 :: v_dual_lshlrev_b32 v3, 2, v0")
    assert [part.line.name for part in parsed.parts] == ["v_mov_b32", "v_lshlrev_b32"]
    assert parsed.line == Line("v_dual_mov_b32")


@pytest.mark.parametrize(
    ("text", "narrow"), [("cbsz:4 blgp:4", True), ("cbsz:2 blgp:3", True), ("cbsz:4", False), ("", False)]
)
def test_operands_of_four_and_six_bits(text: str, narrow: bool) -> None:
    name = "v_mfma_f32_32x32x64_f8f6f4 v[0:15], v[16:23], v[24:31], v[0:15]"
    assert statement(f"{name} {text}").line.narrow == narrow


def test_loads_past_the_registers() -> None:
    assert access_of(statement("buffer_load_dwordx4 v1, s[4:7], 0 offen lds").line) == ("load to LDS 16", 1)
    assert access_of(statement("global_load_lds_dwordx4 v[0:1], off").line) == ("load to LDS 16", 1)
