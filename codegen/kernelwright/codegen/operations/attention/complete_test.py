from __future__ import annotations

from typing import Any

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.operations.attention import cutlass
from kernelwright.codegen.operations.attention.spec import AttentionSpec
from kernelwright.codegen.selecting.specs import parse_kernel, parse_spec
from kernelwright.codegen.violations import IllegalKernelError, SpecError

GFX942 = archs.load("gfx942")
FWD: dict[str, Any] = {"op": "attention", "family": "fwd", "dtype": "bf16", "hdim": 128}


def spec(**changes: Any) -> AttentionSpec:
    made = parse_spec({**FWD, **changes}, GFX942)
    assert isinstance(made, AttentionSpec)
    return made


def test_the_table_fills_what_is_not_stated() -> None:
    made = spec()
    assert (made.hdim_q, made.hdim_v, made.pipeline, made.block_per_cu) == (128, 128, "qr_async", -1)
    assert made.tile.model_dump() == {"m0": 128, "n0": 128, "k0": 32, "n1": 128, "k1": 32, "k0max": 128}
    assert (made.wave.m0, made.warp_tile.m0, made.wave.m2) == (4, 32, 0)
    assert made.pad.s and made.pad.sk and made.pad.d and made.pad.dv and not made.lse


def test_a_feature_chooses_its_pipeline() -> None:
    assert spec(bias="elementwise").pipeline == "qr" and spec(bias="alibi").pipeline == "qr_async"
    assert spec(family="fwd_splitkv").lse and not spec(family="fwd_splitkv").paged_kv
    assert spec(family="batch_prefill").page_size == 1 and spec(family="batch_prefill").group
    deterministic = spec(family="bwd_convert_dq", deterministic=True)
    assert deterministic.tile.n0 == 128 and spec(family="bwd_convert_dq").tile.n0 == 0


def test_three_spellings_of_extents_are_one() -> None:
    written = [128, 128, 32, 128, 32, 128]
    axes = ("m0", "n0", "k0", "n1", "k1", "k0max")
    flat = {f"tile_{axis}": value for axis, value in zip(axes, written, strict=True)}
    assert spec(tile=written) == spec(tile=dict(zip(axes, written, strict=True))) == spec(**flat) == spec()
    assert spec(wave=[4, 1, 1, 4, 1, 1]) == spec()
    assert spec(pad=[True, False, True, True]).pad.sk is False and spec(pad_sk=False).pad.d


@pytest.mark.parametrize("name", archs.names())
def test_every_family_has_a_default(name: str) -> None:
    arch = archs.load(name)
    dtype = "bf16"
    for family in ("fwd_splitkv_combine", "fwd_appendkv", "bwd_dot_do_o", "bwd_convert_dq"):
        if arch.backend == "cutlass" and family not in cutlass.SOURCES_OF:
            continue  # a rule refuses it
        kernel = parse_kernel({**FWD, "family": family, "dtype": dtype}, arch)
        assert parse_kernel(kernel.spec.model_dump(mode="json"), arch) == kernel


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"family": "fw"}, "family = 'fw' is unknown .did you mean 'fwd'"),
        ({"hdimm": 3}, "unknown field 'hdimm' .did you mean 'hdim'"),
        ({"hdim_v": 64}, "'hdim' stands for both 'hdim_q' and 'hdim_v'"),
        ({"tile": [1] * 7}, "is neither a list of 1 to 6 values nor an object of m0, n0"),
        ({"pad": [True]}, "is neither a list of 4 values nor an object of s, sk, d, dv"),
        ({"tile": [128], "tile_m0": 64}, "both 'tile' and 'tile_m0' are given"),
        ({"receipt": 2}, "'receipt' is no property of a kernel"),
        ({"hdim": "128"}, "hdim_q = '128' is no whole number"),
        ({"tile_m0": -1}, "tile.m0 = -1"),
        ({"family": None}, "family = None is unknown"),
    ],
)
def test_wrong_input_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spec(**changes)


def test_what_the_table_lacks_is_refused_with_the_rule_and_the_nearest_kernel() -> None:
    with pytest.raises(IllegalKernelError) as caught:
        parse_kernel({**FWD, "hdim": 112}, GFX942)
    assert [violation.rule for violation in caught.value.violations] == ["attention.hdim"]
    assert str(caught.value).endswith("nearest legal kernel: hdim_q = 128, hdim_v = 128")
    with pytest.raises(IllegalKernelError, match=r"ck_tile.attention_features: sink = True"):
        parse_kernel({**FWD, "sink": True}, GFX942)
    with pytest.raises(IllegalKernelError, match=r"attention.dtype: dtype = fp8"):
        parse_kernel({**FWD, "dtype": "fp8"}, archs.load("gfx90a"))
