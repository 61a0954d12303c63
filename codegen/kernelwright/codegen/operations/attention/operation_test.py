from __future__ import annotations

from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.backends.registry import backend_for
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.attention import ck_tile
from kernelwright.codegen.operations.attention.kinds import Bias, Family, Pipeline
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.selecting.filters import apply_filter
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.templates import render_template
from kernelwright.codegen.testing.expansions import expand_set
from kernelwright.codegen.violations import SpecError

ATTENTION = operation("attention")


def kernel(arch: str = "gfx942", **fields: Any) -> Kernel:
    return parse_kernel({"op": "attention", "family": "fwd", "dtype": "bf16", "hdim": 128, **fields}, archs.load(arch))


def test_filters_see_every_field() -> None:
    made = kernel(mask="generic", lse=True)
    seen = ATTENTION.view(made.spec)
    assert set(seen) == set(ATTENTION.attributes)
    assert (seen["tile_m0"], seen["pad_sk"], seen["mask"], seen["hdim"]) == (128, True, "generic", 128)
    assert apply_filter("c.hdim == 128 and c.lse and c.variant == 'fwd' and c.wave_m0 == 4", [made]) == [made]


def test_families_without_products_need_no_matrix_instructions() -> None:
    expected = {family: ATTENTION.expects(kernel(family=family), archs.load("gfx942")) for family in Family}
    assert {family for family, one in expected.items() if one.matrix_instructions} == {
        *(Family.FWD, Family.FWD_SPLITKV, Family.FWD_PAGEDKV, Family.BATCH_PREFILL, Family.BWD_DQ_DK_DV)
    }
    assert expected[Family.FWD_SPLITKV_COMBINE].device_kernels == 5  # 8, 16, 32, 64 and 128 splits


@pytest.mark.parametrize("name", [name for name in archs.names() if archs.load(name).backend == "ck_tile"])
def test_amd_libraries_are_planned(name: str) -> None:
    arch = archs.load(name)
    kernels = expand_set("attention:essential", arch).kernels
    plan = compile_plan("attention", arch, kernels, backend_for(arch, {}))
    assert len(kernels) >= 4
    assert all(ATTENTION.seconds(made, arch) > 0 and ATTENTION.features(made.spec, arch) == () for made in kernels)
    written = {file.path for file in plan.all_files}
    assert {f"{name}/{made.name}{suffix}" for made in kernels for suffix in (".hpp", ".c", ".image.S")} <= written


@pytest.mark.parametrize("name", [name for name in archs.names() if archs.load(name).backend != "ck_tile"])
def test_other_libraries_are_planned(name: str) -> None:
    arch = archs.load(name)
    assert compile_plan(
        "attention", arch, expand_set("attention:essential", arch).kernels, backend_for(arch, {})
    ).actions


def traits(**fields: Any) -> Any:
    made = kernel(**fields)
    return ck_tile.context(made, archs.load(made.arch))["traits"]


def test_descriptors_of_8_bits_name_each_type_and_the_factors() -> None:
    made = traits(dtype="fp8bf16", qscale="per_tensor", bias="elementwise")
    assert (made["dtype_q"], made["dtype_o"], made["dtype_bias"]) == ("KW_FP8", "KW_BF16", "KW_FP32")
    assert made["qscales"] == "KW_SERVES(KW_QSCALE_NONE) | KW_SERVES(KW_QSCALE_PER_TENSOR)"
    assert traits(dtype="fp8")["qscales"] == "KW_SERVES(KW_QSCALE_NONE)"
    split = traits(family="fwd_splitkv", dtype="fp8", static_quant=True)
    assert split["qscales"] == made["qscales"]


def rendered(made: Kernel) -> str:
    variables = {"name": made.name, "arch": made.arch, "symbol": made.symbol, "spec": made.spec}
    return render_template(ck_tile.template(made), {**ck_tile.symbols(made), **variables})


@pytest.mark.parametrize("family", Family)
def test_every_kernel_of_ck_tile_is_rendered(family: Family) -> None:
    for arch in ("gfx942", "gfx950", "gfx1201"):
        kernels = [
            one
            for one in expand_set("attention:all", archs.load(arch)).kernels
            if ATTENTION.variant(one.spec) == family
        ]
        assert kernels or (arch, family) == ("gfx1201", Family.BATCH_PREFILL)
        texts = [rendered(one) for one in kernels[:: max(1, len(kernels) // 40)]]
        assert len(set(texts)) == len(texts) and all(len(text.splitlines()) <= 60 for text in texts)


def test_the_description_says_what_the_spec_says() -> None:
    text = rendered(kernel(hdim=64, bias="elementwise", dropout=True, pad=[True, True, True, True]))
    for line in (
        "using tile = ck_tile::sequence<128, 64, 32, 64, 32, 64>;",
        "using warp_tile1 = ck_tile::sequence<32, 32, 16>;",
        "using pipeline = kernelwright::hip::attention::qr<P>;",
        "static constexpr auto bias_kind = kernelwright::hip::attention::elementwise;",
        "static constexpr bool lse = false, dropout = true;",
    ):
        assert line in text
    assert set(ck_tile.BIASES) == set(Bias)
    eight_bits = rendered(kernel(dtype="fp8bf16"))
    assert "using out = ck_tile::bf16_t;" in eight_bits and "using bias = float;" in eight_bits


def test_pipelines_without_a_template_are_refused() -> None:
    made = kernel("gfx950")
    v3 = made.model_copy(update={"spec": made.spec.model_copy(update={"pipeline": Pipeline.V3})})
    with pytest.raises(SpecError, match=r"no template of a fwd kernel with pipeline v3; use qr, qr_async, qs"):
        ck_tile.template(v3)
