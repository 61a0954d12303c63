from __future__ import annotations

from collections import Counter

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.operations.convolution import rule_sets
from kernelwright.codegen.operations.convolution.rule_sets import CONTAINED, RULE_SETS, missing, rule_set
from kernelwright.codegen.operations.convolution.samples import category
from kernelwright.codegen.operations.convolution.sets import ConvSets
from kernelwright.codegen.operations.convolution.spec import Direction
from kernelwright.codegen.selecting.expand import EmptyExpansionError

GPUS = ("gfx90a", "gfx942", "gfx950")
# By architecture: implicit GEMMs of the full set; and each is for both 2D and 3D, fp16 and bf16.
FULL = {"gfx90a": 4584, "gfx942": 13988, "gfx950": 13988}
DEPTHWISE = 20  # for each dtype


@pytest.mark.parametrize("name", GPUS)
def test_the_sizes_of_sets(name: str) -> None:
    arch = archs.load(name)
    full = rule_set("full", arch)
    assert len(set(full)) == len(full)
    assert sum(not spec.depthwise for spec in full) == FULL[name]
    assert Counter(str(spec.dtype) for spec in full if spec.depthwise) == dict.fromkeys(
        ("fp16", "bf16", "fp32"), DEPTHWISE
    )
    sizes = {each: len(rule_set(each, arch)) for each in RULE_SETS}
    assert sizes["full"] > sizes["full_tests"] > sizes["tests"] > sizes["tiny"] > 0


def test_forward_data_and_weight_of_the_full_set() -> None:
    counts = Counter(
        (spec.direction, spec.spatial_dims, str(spec.dtype))
        for spec in rule_set("full", archs.load("gfx942"))
        if not spec.depthwise
    )
    fp16 = {(str(direction), dims): counts[direction, dims, "fp16"] for direction in Direction for dims in (2, 3)}
    fp32 = {(str(direction), dims): counts[direction, dims, "fp32"] for direction in Direction for dims in (2, 3)}
    assert list(fp16.values()) == [659, 649, 124, 104, 2404, 2392]
    assert list(fp32.values()) == [320, 320, 84, 84, 258, 258]
    assert all(counts[key[0], key[1], "bf16"] == counts[key] for key in counts if key[2] == "fp16")


@pytest.mark.parametrize("name", GPUS)
@pytest.mark.parametrize(("inner", "outer"), CONTAINED)
def test_sets_contain_each_other(inner: str, outer: str, name: str) -> None:
    assert missing(inner, outer, archs.load(name)) == ()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    arch = archs.load("gfx942")
    gone = next(spec for spec in rule_set("tests", arch) if spec.dtype == "bf16")
    full = tuple(spec for spec in rule_set("full", arch) if spec != gone)
    monkeypatch.setitem(rule_sets._known, "gfx942", (arch, full))
    (sentence,) = ConvSets().missing_kernels("tests", arch)
    assert sentence.startswith("grouped_conv_") and "_bf16_" in sentence
    assert sentence.endswith(" is in convolution:tests and not in convolution:full on gfx942")
    assert ConvSets().missing_kernels("full", arch) == ()


def test_samples_have_each_kind() -> None:
    arch = archs.load("gfx950")
    full, fifth, tiny = (rule_set(name, arch) for name in ("full", "full_tests", "tiny"))
    kinds = {(category(spec), spec.dtype) for spec in full}
    assert {(category(spec), spec.dtype) for spec in fifth} == kinds
    combined = {(spec.variant, spec.dtype, spec.pipeline, spec.scheduler) for spec in full}
    assert {(spec.variant, spec.dtype, spec.pipeline, spec.scheduler) for spec in fifth} == combined
    assert {category(spec) for spec in tiny} == {category(spec) for spec in full} and len(tiny) >= 10


@pytest.mark.parametrize("name", GPUS)
def test_kernels_are_those_that_can_be_built(name: str) -> None:
    arch = archs.load(name)
    expansion = ConvSets().expand("tests", arch)
    members = rule_set("tests", arch)
    assert {kernel.spec for kernel in expansion.kernels} <= set(members)
    assert 0 < len(expansion.kernels) < len(members) and set(expansion.dropped) >= {"ck_tile_conv.pipeline"}


def test_an_architecture_without_kernels_is_refused() -> None:
    with pytest.raises(EmptyExpansionError, match=r"rule set .convolution:full. has no kernels for sm_90a"):
        ConvSets().expand("full", archs.load("sm_90a"))
