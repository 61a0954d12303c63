from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.attention import cutlass
from kernelwright.codegen.operations.attention.arch_section import attention_section
from kernelwright.codegen.operations.attention.kinds import Bias, Family, Mask, Pipeline
from kernelwright.codegen.operations.attention.rules.structs import flag
from kernelwright.codegen.operations.attention.spec import attention_spec
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.problems.attention.description import TRAITS

ARCH = archs.load("sm_90a")
INCLUDE = Path(__file__).parents[5] / "dispatcher_cpp/include/kernelwright"


def kernel(**fields: Any) -> Kernel:
    given = {"op": "attention", "family": "fwd", "dtype": "bf16", "hdim": 128, **fields}
    return parse_kernel(given, ARCH)


def test_every_word_of_the_architecture_has_a_symbol() -> None:
    section = attention_section(ARCH)
    assert set(section.dtypes) == set(cutlass.ELEMENTS) == set(cutlass.PLAIN_ELEMENTS)
    assert set(section.masks) == set(Mask) == set(cutlass.MASKS)
    assert set(cutlass.SOURCES_OF) <= section.families


@pytest.mark.parametrize("family", cutlass.SOURCES_OF)
def test_traits_are_members_of_the_abi(family: str) -> None:
    context = cutlass.context(kernel(family=family, lse=True) if family == "fwd" else kernel(family=family), ARCH)
    known = "".join((INCLUDE / name).read_text() for name in ("attention.h", "dtypes.h"))
    traits = context["traits"]
    assert isinstance(traits, dict)
    for name, value in traits.items():
        assert name in TRAITS.members
        for symbol in re.findall(r"KW_[A-Z_0-9]+", str(value)):
            assert re.search(rf"\b{symbol}\b", known)


def test_masks_decide_what_the_loop_compares() -> None:
    configs = {mask: cutlass.context(kernel(mask=mask), ARCH)["config"] for mask in Mask}
    assert [(one["bounded"], one["windowed"]) for one in configs.values()] == [  # type: ignore[index]
        (False, False),
        (True, False),
        (True, False),
        (True, True),
    ]


def test_a_kernel_without_a_feature_serves_problems_without_it_alone() -> None:
    def traits(**fields: Any) -> Any:
        return cutlass.context(kernel(**fields), ARCH)["traits"]

    assert traits()["lses"] == "KW_SERVES(0)" and traits(lse=True)["lses"] == "KW_SERVES_BOTH"
    assert traits()["groups"] == "KW_SERVES(0)" and traits(group=True)["groups"] == "KW_SERVES_BOTH"
    assert traits(logits_soft_cap=True)["soft_caps"] == "KW_SERVES(1)"  # a capped kernel caps always


def test_a_kernel_with_a_bias_serves_problems_with_it_alone() -> None:
    biased = [cutlass.context(kernel(bias=bias), ARCH) for bias in Bias]
    traits: list[Any] = [one["traits"] for one in biased]
    assert [one["biases"] for one in traits] == [
        "KW_SERVES(KW_BIAS_NONE)",
        "KW_SERVES(KW_BIAS_ELEMENTWISE)",
        "KW_SERVES(KW_BIAS_ALIBI)",
    ]
    assert ["dtype_bias" in one for one in traits] == [False, True, False]


@pytest.mark.parametrize("hdim", [64, 128])
def test_gradients_take_one_pass_by_tma_and_two_otherwise(hdim: int) -> None:
    fields = {"family": "bwd_dq_dk_dv", "hdim": hdim, "mask": "generic", "group": True}
    usual, by_tma = (cutlass.context(kernel(**fields, **more), ARCH) for more in ({}, {"pipeline": "tma"}))
    assert (usual["launcher"], by_tma["launcher"]) == ("gradient_launcher", "overlapped_launcher")
    usual_traits, plain, ordered = (
        cutlass.traits(attention_spec(kernel(**fields, **more)))
        for more in ({}, {"pipeline": "tma"}, {"pipeline": "tma", "deterministic": True})
    )
    assert (usual_traits.work_percent, plain.work_percent) == (220, 100)
    flags_and_ranks = [(one.deterministics, one.selection_rank) for one in (plain, ordered)]
    assert flags_and_ranks == [(flag(False), 0), (flag(True), 1)]  # an order that nobody asks for is waited for in vain


def test_gradients_by_tma_add_a_bias() -> None:
    fields = {"family": "bwd_dq_dk_dv", "mask": "generic", "group": True, "pipeline": "tma"}
    contexts = [cutlass.context(kernel(**fields, bias=bias), ARCH) for bias in Bias]
    assert [one["config"]["bias"].rsplit("::")[-1] for one in contexts] == [str(bias) for bias in Bias]  # type: ignore[index]
    assert [one["traits"]["dbiases"] for one in contexts] == ["KW_SERVES(0)"] * 3  # type: ignore[index]


def test_the_small_set_is_few_kernels() -> None:
    kernels = expand_set("attention:coverage", ARCH).kernels
    assert len(kernels) <= 36 and all(cutlass.context(one, ARCH) for one in kernels)


def test_both_types_have_the_same_kernels() -> None:
    for name in ("coverage", "release"):
        specs = [attention_spec(one) for one in expand_set(f"attention:{name}", ARCH).kernels]
        spec_sets = [
            {one.model_copy(update={"dtype": "bf16"}) for one in specs if one.dtype == dtype}
            for dtype in ("fp16", "bf16")
        ]
        missing = spec_sets[1] - spec_sets[0]
        assert spec_sets[0] <= spec_sets[1] and all(one.deterministic and name == "coverage" for one in missing)


def test_caches_are_read_with_or_without_what_a_kernel_adds() -> None:
    """They wait for memory: kernels of mma.sync choose by the problem."""
    fields = {"family": "fwd_splitkv", "mask": "generic"}
    traits = [cutlass.traits(attention_spec(kernel(**fields, bias=bias))) for bias in Bias]
    assert [len(one.biases) for one in traits] == [1, 3, 2] and [one.selection_rank for one in traits] == [0, 1, 1]
    assert cutlass.traits(attention_spec(kernel(**fields, logits_soft_cap=True))).soft_caps == flag(True)


def test_the_release_set_serves_every_mask_and_head_dimension_of_forward_kernels() -> None:
    assert set(expand_set("attention:essential", ARCH).kernels) < set(expand_set("attention:release", ARCH).kernels)
    specs = [attention_spec(one) for one in expand_set("attention:release", ARCH).kernels]
    forward = [one for one in specs if one.family is Family.FWD and one.bias is Bias.NONE]
    plain = [one for one in forward if not one.logits_soft_cap]
    assert {one.hdim_q for one in forward if one.logits_soft_cap} == {128, 256}
    assert {(one.hdim_q, one.mask) for one in plain} == {
        (hdim, mask) for hdim in (64, 128, 256) for mask in (Mask.NONE, Mask.BOTTOM_RIGHT, Mask.GENERIC)
    }
    assert all(one.group and one.lse and one.sink for one in plain)
    assert {one.bias for one in specs} == set(Bias) and len(specs) <= 88


def test_the_release_set_has_gradients_of_what_it_computes_forward() -> None:
    specs = [attention_spec(one) for one in expand_set("attention:release", ARCH).kernels]
    ordered = [one for one in specs if one.family is Family.BWD_DQ_DK_DV and one.deterministic]
    assert {(one.hdim_q, one.bias) for one in ordered} == {(64, Bias.NONE), *((128, bias) for bias in Bias)}
    assert all(one.mask is Mask.GENERIC and one.group for one in ordered)
    dots = {one.hdim_q for one in specs if one.family is Family.BWD_DOT_DO_O}
    assert dots == {one.hdim_q for one in ordered} | {256}
    by_products = [one for one in specs if one.family is Family.BWD_DQ_DK_DV and one.pipeline is Pipeline.BWD]
    assert {(one.hdim_q, one.bias) for one in by_products} == {(128, Bias.NONE), (256, Bias.ELEMENTWISE)}
