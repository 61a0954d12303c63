"""A small vision model is recorded; a library is built for its convolution and its attention, and serves both."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernelwright.codegen.interface.cli import main
from kernelwright.dispatch import Device, Dispatcher, KernelLibrary, NoKernelError, record
from kernelwright.dispatch.recording.trace import read_trace
from kernelwright.dispatch.testdata import mocks

pytestmark = pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")

ARCH = Device("cpu").archs[0]
DRAW = np.random.default_rng(0)
IMAGES, FILTERS, BIAS = (DRAW.standard_normal(shape, np.float32) for shape in ((2, 8, 8, 3), (16, 4, 4, 3), (16,)))
QUERIES, KEYS, VALUES = (DRAW.standard_normal((2, 4, 2, 8), np.float32) for _ in range(3))
LAUNCHES = 3


def patches(dispatcher: Dispatcher) -> Any:
    """sigmoid(images * filters + bias), 4x4 points at a time: no shipped kernel has this epilogue."""
    return dispatcher.conv_forward(IMAGES, FILTERS, stride=4, bias=BIAS, activation="sigmoid")


def attended(dispatcher: Dispatcher) -> Any:
    return dispatcher.attention(QUERIES, KEYS, VALUES)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> KernelLibrary:
    """Built for problems of which a library serves none."""
    mocks.native_library()
    folder = tmp_path_factory.mktemp("recorded")
    nothing = Dispatcher(mocks.write_library(folder / "mock", arch=ARCH))
    trace = folder / "trace.json"
    with record(trace):
        for _ in range(LAUNCHES):
            for call in (patches, attended):
                with pytest.raises(NoKernelError):
                    call(nothing)
    assert {(one.op, one.unserved) for one in read_trace(trace)} == {("convolution", 3), ("attention", 3)}
    chosen = ["--problems", str(trace), "--budget-kernels", "2", "--arch", ARCH]
    built = [*chosen, "--name", "model", "--trees", os.environ["KERNELWRIGHT_TREES"], "--out", str(folder / "library")]
    assert main(["build", *built]) == 0
    return KernelLibrary.load(folder / "library" / ARCH)


@pytest.mark.thorough(instead="tests/gemm/recorded/recorded_test.py")
def test_the_library_serves_what_was_recorded(library: KernelLibrary, tmp_path: Path) -> None:
    assert {kernel.spec["op"] for kernel in library.kernels} == {"convolution", "attention"}
    dispatcher = Dispatcher(library)
    with record(tmp_path / "again.json"):
        convolved, mixed = patches(dispatcher), attended(dispatcher)
    assert not any(one.unserved for one in read_trace(tmp_path / "again.json"))
    cut = IMAGES.astype(np.float64).reshape(2, 2, 4, 2, 4, 3).transpose(0, 1, 3, 2, 4, 5)
    exact = 1 / (1 + np.exp(-(np.einsum("nhwyxc,kyxc->nhwk", cut, FILTERS) + BIAS)))
    np.testing.assert_allclose(convolved, exact, rtol=1e-4, atol=1e-5)
    scores = np.einsum("bqhd,bkhd->bhqk", QUERIES.astype(np.float64), KEYS) / np.sqrt(8)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    np.testing.assert_allclose(mixed, np.einsum("bhqk,bkhd->bqhd", weights, VALUES), rtol=1e-4, atol=1e-5)
