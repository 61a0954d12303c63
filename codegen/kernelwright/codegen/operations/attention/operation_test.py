from __future__ import annotations

from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.backends.registry import backend_for
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.attention import ck_tile
from kernelwright.codegen.operations.attention.kinds import Bias, Family
from kernelwright.codegen.planning.compile_plan import compile_plan
from kernelwright.codegen.selecting.filters import apply_filter
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.templates import render_template
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
    expected = {family: ATTENTION.expects(kernel(family=family)) for family in Family}
    assert {family for family, one in expected.items() if one.matrix_instructions} == {
        *(Family.FWD, Family.FWD_SPLITKV, Family.FWD_PAGEDKV, Family.BATCH_PREFILL, Family.BWD_DQ_DK_DV)
    }
    assert expected[Family.FWD_SPLITKV_COMBINE].device_kernels == 5  # 8, 16, 32, 64 and 128 splits


@pytest.mark.parametrize("name", archs.names())
def test_libraries_of_amd_gpus_are_refused(name: str) -> None:
    arch = archs.load(name)
    for made in expand_set("fmha_essential", arch).kernels:
        assert ATTENTION.seconds(made, arch) > 0
        if arch.backend in ("cpu", "cutlass"):
            assert compile_plan("attention", arch, [made], backend_for(arch, {})).actions
            continue
        assert ATTENTION.features(made.spec, arch) == ()
        with pytest.raises(SpecError, match="no attention kernel is built for the backend"):
            compile_plan("attention", arch, [made], backend_for(arch, {}))


def rendered(made: Kernel) -> str:
    variables = {"name": made.name, "arch": made.arch, "symbol": made.symbol, "spec": made.spec}
    return render_template(ck_tile.template(made), {**ck_tile.context(made), **variables})


def test_every_forward_kernel_of_ck_tile_is_rendered() -> None:
    for arch in ("gfx942", "gfx950", "gfx1201"):
        kernels = [one for one in expand_set("fmha_all", archs.load(arch)).kernels if one.spec.family is Family.FWD]  # type: ignore[attr-defined]
        texts = [rendered(one) for one in kernels[::53]]
        assert len(set(texts)) == len(texts) and all(len(text.splitlines()) <= 60 for text in texts)


def test_the_description_says_what_the_spec_says() -> None:
    text = rendered(kernel(hdim=64, bias="elementwise", dropout=True, pad=[True, True, True, True]))
    for line in (
        "using tile = ck_tile::sequence<128, 64, 32, 64, 32, 64>;",
        "using warp_tile1 = ck_tile::sequence<32, 32, 16>;",
        "using pipeline = kernelwright::hip::attention::qr<P>;",
        "static constexpr auto bias_kind = kernelwright::hip::attention::elementwise;",
        "static constexpr bool dropout = true;",
        "static constexpr bool lse = false;",
    ):
        assert line in text
    assert set(ck_tile.BIASES) == set(Bias)
    eight_bits = rendered(kernel(dtype="fp8bf16"))
    assert "using out = ck_tile::bf16_t;" in eight_bits and "using bias = float;" in eight_bits


def test_families_without_a_template_are_refused() -> None:
    with pytest.raises(SpecError, match="no template of a fwd_appendkv kernel with pipeline appendkv; allowed"):
        ck_tile.template(kernel(family="fwd_appendkv"))
