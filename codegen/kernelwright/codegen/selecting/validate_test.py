from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernelwright import arch as archs
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operation import operation
from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.operations.gemm.testing.strategies import likely_specs, specs
from kernelwright.codegen.planning.render import render_kernel
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.validate import validate


@settings(max_examples=100, deadline=None)
@given(specs(), st.sampled_from(archs.names()))
def test_validate_never_raises(spec: GemmSpec, name: str) -> None:
    arch = archs.load(name)
    ids = {rule.id for rule in operation("gemm").rules(arch.backend)}
    for violation in validate(Kernel(arch=name, spec=spec), arch):
        assert violation.rule in ids and violation.field and violation.message


@pytest.mark.parametrize("name", archs.names())
def test_what_is_valid_renders(name: str) -> None:
    arch = archs.load(name)
    legal = 0
    # Random specs are seldom legal; those of a rule set always are.
    candidates = likely_specs(arch) | st.sampled_from(
        [kernel.spec for kernel in expand_set("gemm:default", arch).kernels]
    )

    @settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(candidates)
    def check(spec: GemmSpec) -> None:
        nonlocal legal
        kernel = Kernel(arch=name, spec=spec)
        if not validate(kernel, arch):
            legal += 1
            text = render_kernel(kernel, arch, arch.backend)[0].text
            assert kernel.symbol in text and text == render_kernel(kernel, arch, arch.backend)[0].text

    check()
    assert legal > 0, "no example was legal: the property was never tested"


def test_another_architectures_kernel_is_refused() -> None:
    arch = archs.load("gfx942")

    @settings(max_examples=5, deadline=None)
    @given(specs())
    def check(spec: GemmSpec) -> None:
        assert [v.rule for v in validate(Kernel(arch="gfx950", spec=spec), arch)] == ["gemm.arch"]

    check()


@pytest.mark.parametrize("backend", ["ck_tile", "cutlass", "cpu"])
def test_rule_ids_are_unique_and_say_why(backend: str) -> None:
    ids = [rule.id for rule in operation("gemm").rules(backend)]
    assert len(ids) == len(set(ids))
    assert all(rule.reason for rule in operation("gemm").rules(backend))
