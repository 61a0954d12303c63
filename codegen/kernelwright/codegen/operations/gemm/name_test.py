from __future__ import annotations

import re

from hypothesis import given, settings

from kernelwright.codegen.operations.gemm.name import kernel_name
from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.operations.gemm.testing.strategies import specs

PLAIN = {
    "op": "gemm",
    "dtype_a": "fp16",
    "dtype_b": "fp16",
    "dtype_c": "fp16",
    "dtype_acc": "fp32",
    "layout": "rcr",
    "tile": {"m": 128, "n": 128, "k": 32},
    "wave": {"m": 2, "n": 2, "k": 1},
    "warp_tile": {"m": 32, "n": 32, "k": 16},
    "pipeline": "compv4",
    "epilogue": "cshuffle",
    "scheduler": "intrawave",
    "pad": {"m": False, "n": False, "k": False},
}


def test_a_plain_kernel_is_named_as_ck_tile_names_it() -> None:
    assert kernel_name(GemmSpec.model_validate(PLAIN)) == (
        "gemm_fp16_rcr_compv4_cshuffle_intrawave_False_False_False_False_128x128x32_2x2x1_32x32x16"
    )


def test_every_other_field_leaves_a_suffix() -> None:
    changed = {
        "dtype_b": ("bf16", "_bbf16"),
        "dtype_c": ("fp32", "_cfp32"),
        "dtype_acc": ("fp16", "_accfp16"),
        "preshuffle": (True, "_preshuffle"),
        "cluster": ({"m": 2, "n": 1, "k": 1}, "_cluster2x1x1"),
        "num_wave_groups": (2, "_wg2"),
        "k_block_per_cu": (3, "_kbpc3"),
        "split_k": (True, "_splitk"),
        "stream_k": ("tree", "_streamk_tree"),
        "num_d": (2, "_multid_Add_None_d2"),
        "d_op": ("multiply", "_multid_Multiply_None_d0"),
        "activation": ("fast_gelu", "_multid_Add_FastGelu_d0"),
        "batched": (True, "_batched"),
        "grouped": (True, "_grouped"),
    }
    plain = kernel_name(GemmSpec.model_validate(PLAIN))
    for field, (value, suffix) in changed.items():
        assert kernel_name(GemmSpec.model_validate({**PLAIN, field: value})) == plain + suffix


@settings(max_examples=200, deadline=None)
@given(specs(), specs())
def test_distinct_specs_have_distinct_names(one: GemmSpec, other: GemmSpec) -> None:
    assert (kernel_name(one) == kernel_name(other)) == (one == other)


@settings(max_examples=120, deadline=None)
@given(specs())
def test_changing_any_one_field_changes_the_name(spec: GemmSpec) -> None:
    fields = spec.model_dump()
    name = kernel_name(spec)
    for extent in ("tile", "wave", "warp_tile", "cluster"):
        for axis in "mnk":
            value = fields[extent][axis]
            other = {**fields, extent: {**fields[extent], axis: value - 1 if value > 1 else 2}}
            assert kernel_name(GemmSpec.model_validate(other)) != name
    switches = ("persistent", "preshuffle", "split_k", "batched", "grouped")
    for field in switches:
        fields.setdefault(field, False)
        assert kernel_name(GemmSpec.model_validate({**fields, field: not fields[field]})) != name
    for axis in "mnk":
        other = {**fields, "pad": {**fields["pad"], axis: not fields["pad"][axis]}}
        assert kernel_name(GemmSpec.model_validate(other)) != name


@settings(max_examples=120, deadline=None)
@given(specs())
def test_names_are_file_names(spec: GemmSpec) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_]{1,240}", kernel_name(spec))
