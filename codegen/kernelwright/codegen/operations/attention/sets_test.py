from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.operations.attention.kinds import Family
from kernelwright.codegen.operations.attention.receipts import receipts
from kernelwright.codegen.operations.attention.spec import attention_spec
from kernelwright.codegen.selecting.expand import EmptyExpansionError, expand_config
from kernelwright.codegen.selecting.sets import set_archs
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.testing.expansions import expand_set

FWD, BWD = ("fwd",), ("bwd_dot_do_o", "bwd_dq_dk_dv", "bwd_convert_dq")
SPLITKV = ("fwd_splitkv", "fwd_splitkv_combine")
# Kernels that CK Tile's own generator lists, less its one file of the interface (the pinned copy, each receipt's
# number): architecture, families that it lists together, our receipt.
MEASURED = {
    ("gfx942", FWD, "ck_default"): 2908,
    ("gfx942", FWD, "ck_extended"): 3932,
    ("gfx942", FWD, "flash_fwd"): 1008,
    ("gfx942", FWD, "aiter_batch"): 1752,
    ("gfx942", FWD, "aiter_group"): 940,
    ("gfx942", FWD, "aiter_cpp"): 2692,
    ("gfx942", FWD, "fp32_all"): 864,
    ("gfx942", FWD, "fp32_min"): 12,
    ("gfx942", SPLITKV, "ck_default"): 1146,
    ("gfx942", SPLITKV, "aiter_group"): 360,
    ("gfx942", SPLITKV, "aiter_cpp"): 1080,
    ("gfx942", ("fwd_appendkv",), "ck_default"): 99,
    ("gfx942", ("fwd_appendkv",), "flash_fwd"): 96,
    ("gfx942", ("fwd_pagedkv",), "ck_default"): 120,
    ("gfx942", ("fwd_pagedkv",), "flash_fwd"): 36,
    ("gfx942", ("fwd_pagedkv",), "aiter_batch"): 32,
    ("gfx942", ("fwd_pagedkv",), "aiter_group"): 16,
    ("gfx942", ("fwd_pagedkv",), "aiter_cpp"): 48,
    ("gfx942", ("batch_prefill",), "aiter_group"): 128,
    ("gfx942", ("batch_prefill",), "aiter_cpp"): 128,
    ("gfx942", BWD, "ck_default"): 6900,
    ("gfx942", BWD, "flash_bwd"): 1140,  # what receipt 2 lists
    ("gfx942", BWD, "pytorch"): 840,
    ("gfx942", BWD, "aiter_bwd_batch"): 2360,
    ("gfx942", BWD, "aiter_bwd_group"): 2300,
    ("gfx942", BWD, "aiter_cpp"): 6900,
    ("gfx942", BWD, "fp32_all"): 918,
    ("gfx942", BWD, "fp32_min"): 22,
    ("gfx950", FWD, "ck_default"): 3004,
    ("gfx950", BWD, "ck_default"): 8256,
    ("gfx950", BWD, "flash_bwd"): 1600,
    ("gfx950", BWD, "pytorch"): 1176,
    ("gfx950", BWD, "aiter_bwd_batch"): 2880,
    ("gfx950", BWD, "aiter_bwd_group"): 2688,
    ("gfx1201", FWD, "ck_default"): 1884,
    ("gfx1201", FWD, "flash_fwd"): 624,
    ("gfx1201", FWD, "aiter_batch"): 1112,
    ("gfx1201", FWD, "aiter_group"): 556,
    ("gfx1201", FWD, "aiter_cpp"): 1668,
    ("gfx1201", SPLITKV, "ck_default"): 954,
    ("gfx1201", BWD, "ck_default"): 5520,
    ("gfx1201", BWD, "flash_bwd"): 912,
    ("gfx1201", BWD, "pytorch"): 672,
    ("gfx1201", BWD, "aiter_bwd_batch"): 1888,
    ("gfx1201", BWD, "aiter_bwd_group"): 1840,
}
# Where ours are fewer or more; docs/attention.md says why.
DIFFERENT = {
    ("gfx942", FWD, "pytorch"): (432, 664),
    ("gfx942", FWD, "fp8_test"): (108, 72),
    ("gfx942", SPLITKV, "flash_fwd"): (858, 840),
    ("gfx942", SPLITKV, "aiter_batch"): (1146, 720),
    ("gfx942", SPLITKV, "pytorch"): (138, 600),
    ("gfx942", ("batch_prefill",), "ck_default"): (384, 128),
    ("gfx942", ("batch_prefill",), "flash_fwd"): (288, 96),
    ("gfx942", ("batch_prefill",), "pytorch"): (288, 64),
    ("gfx942", ("batch_prefill",), "aiter_batch"): (256, 0),
    ("gfx942", ("fwd_appendkv",), "aiter_batch"): (99, 96),
    ("gfx942", ("fwd_appendkv",), "aiter_cpp"): (99, 96),
    ("gfx1201", SPLITKV, "flash_fwd"): (714, 696),
    ("gfx942", ("fwd_pagedkv",), "pytorch"): (36, 24),
    ("gfx942", ("fwd_appendkv",), "aiter_group"): (99, 0),
}


@cache
def counts(arch: str, receipt: str) -> Counter[Family]:
    """How many kernels of each family a receipt lists for an architecture."""
    return Counter(attention_spec(kernel).family for kernel in expand_set(f"fmha_{receipt}", archs.load(arch)).kernels)


def listed(arch: str, families: tuple[str, ...], receipt: str) -> int:
    return sum(counts(arch, receipt)[Family(family)] for family in families)


MEASURED_FEWEST = sorted(MEASURED.items(), key=lambda item: item[1])
DIFFERENT_FEWEST = sorted(DIFFERENT.items(), key=lambda item: item[1])


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize(("asked", "measured"), MEASURED_FEWEST, ids=str)
def test_receipts_list_what_ck_tile_lists(asked: tuple[str, tuple[str, ...], str], measured: int) -> None:
    assert listed(*asked) == measured


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize(("asked", "differs"), DIFFERENT_FEWEST, ids=str)
def test_differences_are_known(asked: tuple[str, tuple[str, ...], str], differs: tuple[int, int]) -> None:
    measured, ours = differs
    assert listed(*asked) == ours != measured


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("name", ["gfx950", "gfx1201", "sm_90a", "x86_64_v4"])
def test_kernels_are_legal_and_have_names_of_their_own(name: str) -> None:
    arch = archs.load(name)
    kernels = expand_set("attention:all", arch).kernels
    assert len({kernel.name for kernel in kernels}) == len(kernels) == len(set(kernels))
    assert max(len(kernel.name) for kernel in kernels) < 200  # which leaves no name to a digest
    assert not any(validate(kernel, arch) for kernel in kernels[::97])


@pytest.mark.thorough(keep=3)
@pytest.mark.parametrize("name", archs.names())
def test_the_essential_set_has_every_family_of_the_architecture(name: str) -> None:
    expansion = expand_set("attention:essential", archs.load(name))
    everything = expand_set("attention:all", archs.load(name)).kernels
    families = {attention_spec(kernel).family for kernel in expansion.kernels}
    assert {attention_spec(kernel).family for kernel in everything} == families
    # CPU kernels compile in two seconds each: the set has four dtypes.
    most = {"cpu": 49, "cutlass": 8, "ck_tile": 10}[archs.load(name).backend]
    assert set(expansion.dropped) <= {"ck_tile.attention_chained_products"} and len(expansion.kernels) <= most


@pytest.mark.thorough(instead="test_differences_are_known")
def test_every_receipt_is_a_set() -> None:
    assert set_archs("attention:fp8_test") == ("gfx1201", "gfx942", "gfx950", "x86_64_v3", "x86_64_v4")
    assert set_archs("attention:all") == archs.names()
    for name, receipt in receipts().items():
        assert receipt.about.endswith(".") and set_archs(f"fmha_{name}")
    with pytest.raises(EmptyExpansionError, match="'attention:fp32_all' has no kernels for gfx1100"):
        expand_set("attention:fp32_all", archs.load("gfx1100"))


def test_a_configuration_lists_values_of_fields() -> None:
    config = {
        "op": "attention",
        "problem": {"family": "fwd", "dtype": "bf16"},
        "tile_config": {"tile": [[128, 64, 32, 64, 32, 64], [128, 128, 32, 64, 32, 64], [32, 64, 32, 64, 32, 64]]},
        "trait_config": {"hdim": [64], "mask": ["none", "generic"], "lse": {"values": [True]}},
    }
    expansion = expand_config(config, archs.load("gfx942"))
    assert len(expansion.kernels) == 4 and expansion.dropped["ck_tile.attention_rows"] == 2
