from __future__ import annotations

import pytest

from kernelwright.codegen.operation import Expectation
from kernelwright.codegen.resources import ck_tile
from kernelwright.codegen.resources.amd.metadata import ReportError


def read_report(text: str, expects: Expectation = Expectation(1, True, ("_sum",))) -> dict[str, int]:  # noqa: B008
    return ck_tile.read_report(text.encode(), expects)


ASSEMBLY = """\
\t.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
kernel:
\tv_mfma_f32_32x32x8_f16 v[0:15], v[0:1], v[2:3], v[0:15]
\tv_mfma_f32_32x32x8_f16 v[0:15], v[0:1], v[2:3], v[0:15]
\ts_endpgm
; v_mfma_in_a_comment
.Lfunc_end0:
\t.size\tkernel, .Lfunc_end0-kernel
; Kernel info:
; codeLenInByte = 6584
; Kernel info of the sum:
; codeLenInByte = 12
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     4
    .args:
      - .offset:         0
        .size:           56
        .value_kind:     by_value
    .group_segment_fixed_size: 16384
    .kernarg_segment_align: 8
    .kernarg_segment_size: 56
    .max_flat_workgroup_size: 256
    .name:           kernel
    .private_segment_fixed_size: 12
    .sgpr_count:     30
    .sgpr_spill_count: 1
    .symbol:         kernel.kd
    .vgpr_count:     136
    .vgpr_spill_count: 3
    .wavefront_size: 64
...
\t.end_amdgpu_metadata
"""


def test_every_resource_is_found() -> None:
    assert read_report(ASSEMBLY) == {
        "vgpr": 136,
        "sgpr": 30,
        "agpr": 4,
        "lds_bytes": 16384,
        "scratch_bytes": 12,
        "vgpr_spills": 3,
        "sgpr_spills": 1,
        "wave_size": 64,
        "block_size": 256,
        "kernarg_bytes": 56,
        "matrix_instructions": 2,
        "code_bytes": 6584,
    }


def test_the_kernel_that_adds_up_slices_is_left_out() -> None:
    second = """\
  - .agpr_count:     0
    .group_segment_fixed_size: 0
    .symbol:         kernel_sum.kd
    .vgpr_count:     16
"""
    for text in (
        ASSEMBLY.replace("...\n", second + "...\n"),
        ASSEMBLY.replace("amdhsa.kernels:\n", "amdhsa.kernels:\n" + second),
    ):
        assert read_report(text) == read_report(ASSEMBLY)


@pytest.mark.parametrize("name", ["v_wmma_f32_16x16x16_f16", "v_smfmac_f32_32x32x16_f16", "v_swmmac_f32_16x16x32_f16"])
def test_all_kinds_of_matrix_instructions_count(name: str) -> None:
    assert read_report(ASSEMBLY.replace("v_mfma_f32_32x32x8_f16", name))["matrix_instructions"] == 2


def test_rdna_has_no_accumulation_registers() -> None:
    assert read_report(ASSEMBLY.replace("- .agpr_count:     4", "- .other:     4"))["agpr"] == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ASSEMBLY.replace("v_mfma_f32_32x32x8_f16", "v_fma_f32"), "kernel.kd has no matrix instruction"),
        (ASSEMBLY.replace("; codeLenInByte", "; length"), "no code length of kernel"),
        (ASSEMBLY.replace(".vgpr_count", ".other"), "no .vgpr_count"),
        (ASSEMBLY.replace("  .name: ", "  .symbol:  second.kd\n    .name: "), "found 2"),
        ("", "no .amdgpu_metadata"),
    ],
)
def test_what_is_no_working_kernel_is_refused(text: str, words: str) -> None:
    with pytest.raises(ReportError, match=words):
        read_report(text)
