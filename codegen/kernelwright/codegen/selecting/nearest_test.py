from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from kernelwright import arch as archs
from kernelwright.arch import Arch
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.spec import GemmSpec
from kernelwright.codegen.operations.gemm.testing.strategies import likely_specs, specs
from kernelwright.codegen.selecting import nearest
from kernelwright.codegen.selecting.nearest import changes, distance, nearest_legal
from kernelwright.codegen.selecting.specs import parse_kernel, parse_spec
from kernelwright.codegen.selecting.validate import validate
from kernelwright.codegen.violations import IllegalKernelError, Violation

GOOD: dict[str, Any] = {
    "op": "gemm",
    "dtype": "fp16",
    "layout": "rcr",
    "tile": [128, 128, 32],
    "wave": [2, 2, 1],
    "warp_tile": [32, 32, 16],
    "pipeline": "compv3",
}


@pytest.mark.thorough(keep=2)
@pytest.mark.parametrize("name", archs.names())
def test_the_nearest_kernel_is_legal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    arch = archs.load(name)
    checked: list[Kernel] = []

    def counted(kernel: Kernel, on: Arch) -> tuple[Violation, ...]:
        checked.append(kernel)
        return validate(kernel, on)

    monkeypatch.setattr(nearest, "validate", counted)

    @settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    @given(specs() | likely_specs(arch))
    def check(spec: GemmSpec) -> None:
        checked.clear()
        proposed = nearest_legal(Kernel(arch=name, spec=spec), arch)
        assert proposed is not None and validate(proposed, arch) == ()
        assert len(checked) < 2 * nearest.MAX_CHECKS

    check()


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"tile": [96, 128, 32]}, {"tile": "128x128x32"}),
        ({"wave": [4, 4, 1], "warp_tile": [32, 32, 32]}, None),
        ({"tile": [128, 128, 4096]}, None),
    ],
)
def test_the_change_is_small(fields: dict[str, Any], expected: dict[str, str] | None) -> None:
    arch = archs.load("gfx942")
    asked = Kernel(arch="gfx942", spec=parse_spec({**GOOD, **fields}, arch))
    proposed = nearest_legal(asked, arch)
    assert proposed is not None
    if expected is not None:
        assert changes(asked, proposed) == expected
    assert distance(asked.spec, proposed.spec) < 12
    assert set(changes(asked, proposed)) <= {"tile", "wave", "warp_tile"}


def test_a_legal_kernel_is_its_own_nearest() -> None:
    arch = archs.load("gfx942")
    kernel = parse_kernel(GOOD, arch)
    assert nearest_legal(kernel, arch) is kernel


def test_the_error_names_one_legal_kernel_and_contradicts_it_nowhere() -> None:
    arch = archs.load("gfx942")
    raw = {**GOOD, "wave": [4, 4, 1], "warp_tile": [32, 32, 32], "tile": [96, 100, 32]}
    with pytest.raises(IllegalKernelError) as caught:
        parse_kernel(raw, arch)
    nearest = caught.value.nearest
    assert nearest is not None
    legal = parse_kernel(nearest, arch)  # it is a whole spec
    shown = str(caught.value).splitlines()[-1]
    assert shown.startswith("  nearest legal kernel: ") and str(caught.value).count("nearest") == 1
    for part in shown.removeprefix("  nearest legal kernel: ").split(", "):
        field, _, value = part.partition(" = ")
        extent = getattr(legal.spec, field)
        assert value == f"{extent.m}x{extent.n}x{extent.k}"
    for violation in caught.value.violations:
        outer, _, axis = violation.field.partition(".")
        value = getattr(legal.spec, outer)
        value = getattr(value, axis) if axis else f"{value.m}x{value.n}x{value.k}"
        assert violation.nearest == str(value)
