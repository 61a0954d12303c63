"""Convolution kernels compiled where they are used, for this machine's processor."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from convolution.correctness.reference import convolve
from kernelwright.dispatch import ConvProblem, Device, NoKernelError
from kernelwright.dispatch.testdata import mocks
from kernelwright.jit import Registry

PLAIN = "c.dtype == 'fp32' and c.layout == 'ndhwgc' and not c.bias and c.activation == 'none'"
PROBLEMS = [
    ConvProblem(direction, 2, 8, 12, (7, 6), (3, 2), 4, stride=(1, 2), pad_left=1)
    for direction in ("forward", "backward_data", "backward_weight")
]


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Registry:
    mocks.native_library()
    made = Registry(Device("cpu", arch="x86_64_v3"), cache=tmp_path_factory.mktemp("jit"))
    made.add_set("convolution:essential", filter=PLAIN)
    return made


def test_every_direction_is_compiled_and_computes(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(registry.missing()) == 3
    dispatcher = registry.dispatcher(max_workers=2)
    monkeypatch.setenv("KERNELWRIGHT_JIT", "off")
    assert registry.missing() == ()
    forward, data, weight = PROBLEMS
    x, w, dy = (
        np.random.default_rng(0).integers(-3, 4, shape).astype(np.float32)
        for shape in (forward.x_shape, forward.w_shape, forward.y_shape)
    )
    options = {"stride": (1, 2), "padding": 1, "groups": 4}
    assert np.array_equal(dispatcher.conv_forward(x, w, **options), convolve(forward, x, w))  # type: ignore[arg-type]
    dx = dispatcher.conv_backward_data(dy, w, (7, 6), **options)  # type: ignore[arg-type]
    assert np.array_equal(dx, convolve(data, dy, w))
    dw = dispatcher.conv_backward_weight(x, dy, (3, 2), **options)  # type: ignore[arg-type]
    assert np.array_equal(dw, convolve(weight, x, dy))


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda problem: problem.direction)
def test_the_kernel_of_a_problem_is_one_of_the_registry(registry: Registry, problem: ConvProblem) -> None:
    kernel = registry.select(problem, max_workers=2)
    assert kernel in registry.kernels and kernel.spec.direction == problem.direction  # type: ignore[attr-defined]


def test_what_no_kernel_serves_is_said(registry: Registry) -> None:
    with pytest.raises(NoKernelError, match="bf16"):
        registry.select(ConvProblem("forward", 1, 8, 8, (5, 5), 3, dtype="bf16"))


def test_one_kernel_by_its_fields(tmp_path: Path) -> None:
    made = Registry(Device("cpu", arch="x86_64_v3"), cache=tmp_path)
    kernel = made.add(
        op="convolution", direction="forward", dtype="fp32", layout="ndhwgc", tile=[12, 16, 8], warp_tile=[6, 16, 1]
    )
    assert made.select(PROBLEMS[0]) == kernel
