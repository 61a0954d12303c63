from __future__ import annotations

import pytest

from gemm.lean.samples import is_built, kind, members, one_of_each_kind, shipped


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize(
    ("arch", "sets"),
    [
        ("gfx942", ("convolution:default", "convolution:tests", "convolution:profiler")),
        ("gfx1201", ("attention:flash_fwd", "attention:pytorch")),
        ("sm_90a", ("convolution:default", "attention:all")),
    ],
)
def test_each_set_has_one_of_each_kind(arch: str, sets: tuple[str, ...]) -> None:
    chosen = one_of_each_kind(arch, sets)
    names = {kernel.name for kernel in chosen}
    assert len(names) == len(chosen)
    for name in sets:
        every = [kernel for kernel in members(name, arch) if is_built(kernel)]
        assert {kind(kernel) for kernel in every} == {kind(kernel) for kernel in every if kernel.name in names}
    assert chosen == one_of_each_kind(arch, sets)


def test_a_kernel_counts_for_every_set_that_holds_it() -> None:
    kinds = {kind(kernel) for kernel in members("convolution:full_tests", "gfx942")}
    assert len(one_of_each_kind("gfx942", ("convolution:full", "convolution:full_tests"))) == len(kinds)


def test_all_operations_ship() -> None:
    assert {kernel.spec.op for kernel in shipped("gfx942")} == {"gemm", "convolution", "attention"}
