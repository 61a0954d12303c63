"""C++ symbols of CPU kernels: every member that the rules allow has one, and the header instantiates it."""

from __future__ import annotations

from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.operations.attention import cpu
from kernelwright.codegen.operations.attention.arch_section import attention_section
from kernelwright.codegen.operations.attention.kinds import Family, KvLookupTable
from kernelwright.codegen.operations.attention.spec import attention_spec
from kernelwright.codegen.planning.render import render_kernel
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import parse_kernel

FWD = {"op": "attention", "family": "fwd", "dtype": "bf16", "hdim": 128}


def context_of(arch: str = "x86_64_v4", **fields: Any) -> dict[str, Any]:
    model = archs.load(arch)
    return dict(cpu.context(parse_kernel({**FWD, **fields}, model), model))


def test_every_word_has_a_symbol() -> None:
    assert set(cpu.TABLES) == set(KvLookupTable)
    for name in ("x86_64_v3", "x86_64_v4"):
        dtypes = attention_section(archs.load(name)).dtypes
        assert {dtype for dtype, _ in cpu.OPERATIONS} == set(dtypes)
        assert {one for dtype in dtypes for one in (dtype.inputs, dtype.output)} == set(cpu.ELEMENTS)


@pytest.mark.parametrize("name", ["x86_64_v3", "x86_64_v4"])
def test_shipped_kernels_render(name: str) -> None:
    arch = archs.load(name)
    for kernel in expand_set("attention:essential", arch).kernels:
        (header,) = render_kernel(kernel, arch, "cpu")
        assert "attention_" in header.text and len(header.text.splitlines()) <= 60


def test_kernels_of_every_family_have_a_type() -> None:
    arch = archs.load("x86_64_v3")
    types = {}
    for kernel in expand_set("attention:all", arch).kernels:
        spec = attention_spec(kernel)
        types[spec.family] = str(cpu.context(kernel, arch)["kernel_type"]).partition("<")[0]
    assert types.keys() == set(Family)
    assert types[Family.FWD] == types[Family.BATCH_PREFILL] == "attention_part_of_8_bits"  # the last ones
    assert types[Family.BWD_DQ_DK_DV] == "attention_gradients"
    assert types[Family.FWD_APPENDKV] == "attention_append"
    assert types[Family.FWD_SPLITKV_COMBINE] == types[Family.BWD_DOT_DO_O] == "attention_lines"


def test_dot_products_need_a_feature() -> None:
    made = context_of(warp_tile=[48, 8, 2, 48, 8, 2])
    assert made["kernel_type"].startswith("attention_part<bf16_dot, score_features<false, KW_BIAS_NONE, false>")
    assert (made["features"], made["required_features"]) == ("avx512_bf16", "kAvx512Bf16")
    assert (context_of()["features"], context_of()["required_features"]) == ("", "kNoFeature")


def test_operands_of_8_bits_are_widened() -> None:
    made = context_of(dtype="fp8bf16", bias="alibi")["kernel_type"]
    assert made.startswith("attention_part_of_8_bits<score_features<false, KW_BIAS_ALIBI, false>")
    assert made.endswith(", bf16>")
    combine, append = (
        context_of(family=family, dtype="fp8")["kernel_type"] for family in ("fwd_splitkv_combine", "fwd_appendkv")
    )
    assert (combine, append) == ("attention_lines<fp8>", "attention_append<fp8>")


def test_a_kernel_serves_what_lacks_its_features() -> None:
    plain, full = context_of()["variant"], context_of(mask="generic", bias="alibi", lse=True, group=True)["variant"]
    assert (plain["masks"], plain["lses"], plain["groups"]) == ("KW_SERVES(KW_MASK_NONE)", *["KW_SERVES(0)"] * 2)
    assert (full["masks"], full["lses"], full["groups"]) == ("KW_SERVES(KW_MASK_GENERIC)", *["KW_SERVES_BOTH"] * 2)
    assert full["biases"] == "KW_SERVES(KW_BIAS_NONE) | KW_SERVES(KW_BIAS_ALIBI)"
    backward = context_of(family="bwd_dq_dk_dv")["variant"]
    assert backward["soft_caps"] == "KW_SERVES_BOTH"


def test_where_k_and_v_may_be() -> None:
    def tables(**fields: Any) -> str:
        return str(context_of(**fields)["variant"]["page_tables"])

    none, block, pages = (f"KW_SERVES(KW_PAGES_{name})" for name in ("NONE", "BLOCK", "LIST"))
    assert tables() == tables(family="fwd_splitkv") == none
    assert tables(family="fwd_splitkv", paged_kv=True) == f"{none} | {block} | {pages}"
    assert tables(family="fwd_pagedkv") == f"{block} | {pages}"
    assert tables(family="batch_prefill", kv_lookup_table="vllm") == block
    assert tables(family="batch_prefill", kv_lookup_table="sglang") == pages
    assert tables(family="fwd_appendkv", paged_kv=True) == f"{none} | {block}"
