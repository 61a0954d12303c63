from __future__ import annotations

import pytest

from kernelwright import arch as archs
from kernelwright.codegen.operation import operation, operation_names
from kernelwright.codegen.selecting.sets import expand_set, missing_kernels, set_archs, set_names
from kernelwright.codegen.violations import SpecError

ARCH = archs.load("x86_64_v3")


@pytest.mark.parametrize("name", ["default", "essential", "release"])
def test_a_name_that_several_operations_have_stands_for_none_of_them(name: str) -> None:
    owners = [op for op in operation_names() if name in operation(op).sets.names()]
    assert len(owners) > 1
    choices = ", ".join(f"{op}:{name}" for op in owners)
    for ask in (lambda: expand_set(name, ARCH), lambda: set_archs(name), lambda: missing_kernels(name, ARCH)):
        with pytest.raises(SpecError, match=rf"set '{name}' does not say of which operation; allowed: {choices}$"):
            ask()


@pytest.mark.parametrize(
    ("written", "whole"),
    [
        ("fp32_rrr_compute", "gemm:fp32_rrr_compute"),
        ("tests", "convolution:tests"),
        ("conv_essential", "convolution:essential"),
        ("convolution:conv_essential", "convolution:essential"),
        ("fmha_essential", "attention:essential"),
        ("fmha_flash_fwd", "attention:flash_fwd"),
    ],
)
def test_a_name_that_one_operation_has_stands_for_its_set(written: str, whole: str) -> None:
    op, _, name = whole.partition(":")
    kernels = expand_set(written, ARCH).kernels
    assert kernels == expand_set(whole, ARCH).kernels == expand_set(name, ARCH, op=op).kernels
    assert {kernel.spec.op for kernel in kernels} == {op}
    assert set_archs(written) == set_archs(whole)


def test_every_spelling_that_is_offered_is_accepted() -> None:
    offered = list(set_names())
    assert len(offered) == len(set(offered)) and not {"default", "essential", "release"} & set(offered)
    for op in operation_names():
        assert {f"{op}:{name}" for name in operation(op).sets.names()} <= set(offered)
        assert set(operation(op).sets.examples) <= set(operation(op).sets.names())
        assert set(operation(op).sets.spellings.values()) <= set(operation(op).sets.names())
    for name in offered:
        missing_kernels(name, ARCH)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (
            "gemm:esential",
            r"unknown kernel set 'gemm:esential' \(did you mean 'gemm:essential'\?\); allowed: gemm:<set>",
        ),
        ("gem:essential", r"unknown operation op = 'gem' \(did you mean 'gemm'\?\)"),
        ("convolution:ck_default", "unknown kernel set 'convolution:ck_default'"),
        ("gemm:", "unknown kernel set 'gemm:'"),
        (7, "a set is a name, not 7; allowed: gemm:<set> with set default, "),
    ],
)
def test_other_names_are_refused(name: object, reason: str) -> None:
    with pytest.raises(SpecError, match=reason):
        expand_set(name, ARCH)


def test_a_set_of_another_operation_is_refused_where_one_is_meant() -> None:
    with pytest.raises(
        SpecError, match="'attention:all' is no kernel set of gemm; name one of its own, such as default"
    ):
        expand_set("attention:all", ARCH, op="gemm")
