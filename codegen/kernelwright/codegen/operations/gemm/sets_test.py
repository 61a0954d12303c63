from __future__ import annotations

import itertools

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.operations.gemm.arch_section import gemm_section
from kernelwright.codegen.operations.gemm.kernel_sets import siblings
from kernelwright.codegen.operations.gemm.sets import _read, rule_set_names
from kernelwright.codegen.operations.gemm.spec import gemm_spec
from kernelwright.codegen.selecting.expand import EmptyExpansionError, expand_config
from kernelwright.codegen.selecting.sets import expand_set, set_archs
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import SpecError

# CK Tile's int8 is wrong on gfx90a (rule ck_tile.dtypes).
LEFT_OUT = {"gfx90a": {"int8"}}


def test_the_sets() -> None:
    assert rule_set_names() == ("coverage", "default", "essential", "release")
    for name in rule_set_names():
        assert set_archs(f"gemm:{name}") == archs.names()


@pytest.mark.parametrize(
    ("name", "arch"), [(name, arch) for name in rule_set_names() for arch in set_archs(f"gemm:{name}")]
)
def test_every_member_is_legal(name: str, arch: str) -> None:
    model = archs.load(arch)
    kernels = expand_set(f"gemm:{name}", model).kernels
    assert len({kernel.name for kernel in kernels}) == len(kernels) > 0
    for kernel in kernels:
        assert validate(kernel, model) == ()


@pytest.mark.parametrize("arch", archs.names())
def test_essential_lists_nothing_that_is_dropped(arch: str) -> None:
    model = archs.load(arch)
    for config in _read("essential")[arch]:
        assert expand_config(config, model).dropped == {}


@pytest.mark.parametrize("arch", archs.names())
def test_essential_is_small_and_default_serves_every_dtype(arch: str) -> None:
    model = archs.load(arch)
    essential = expand_set("gemm:essential", model).kernels
    coverage = expand_set("gemm:coverage", model).kernels
    default = expand_set("gemm:default", model).kernels
    assert set(essential) <= set(coverage) <= set(default) and len(default) <= 90
    assert set(coverage) <= set(expand_set("gemm:release", model).kernels)
    assert {"fp16", "bf16"} <= {str(gemm_spec(kernel).dtype_a) for kernel in essential}
    if model.backend == "ck_tile":  # what models compute, and each variant once on one architecture
        types = [(spec.dtype_a, spec.dtype_c, spec.layout) for spec in map(gemm_spec, coverage)]
        for dtype, result, layout in itertools.product(("fp16", "bf16"), ("same", "fp32"), ("rcr", "rrr", "crr")):
            result = dtype if result == "same" else result
            assert (dtype, result, layout) in types or (result, layout) == ("fp32", "rrr")
        assert len(essential) <= 10 and len(coverage) <= 28
    if model.backend == "cutlass":
        assert 3 <= len(essential) <= 4
        assert len(coverage) <= 30  # every product of a training step is served, see docs/coverage.md
    offered = {key.split("_")[0] for key in gemm_section(model).warp_tiles} - LEFT_OUT.get(arch, set())
    assert {str(gemm_spec(kernel).dtype_a) for kernel in default} == offered


def test_unknown_names_are_errors() -> None:
    with pytest.raises(SpecError, match=r"unknown kernel set 'esential' \(did you mean '(gemm|norm):essential'\?\)"):
        expand_set("esential", archs.load("gfx942"))
    unknown = archs.load("gfx942").model_copy(update={"name": "gfx943"})
    with pytest.raises(EmptyExpansionError, match="no kernels for gfx943; it knows gfx1100"):
        expand_set("gemm:essential", unknown)


def test_a_preselected_set_without_kernels_names_those_that_have() -> None:
    with pytest.raises(EmptyExpansionError) as raised:
        expand_set("fp16_rcr_preshuffle", archs.load("sm_90a"))
    hint = str(raised.value).splitlines()[-1]
    assert hint.startswith("sets of the same data type and layout for sm_90a: fp16_rcr_compute, fp16_rcr_memory, ")
    assert "preshuffle" not in hint and "_all" not in hint
    with pytest.raises(EmptyExpansionError, match="no instruction") as raised:
        expand_set("fp8_rcr_compute", archs.load("x86_64_v4"))  # no set of fp8 has kernels
    assert "same data type" not in str(raised.value)
    assert siblings("essential", archs.load("gfx942")) == ()  # which has many data types
