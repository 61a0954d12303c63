"""The generator's time model of convolution is the dispatcher's: the same kernels serve, in the same time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.convolution.time_model.model import ConvTimeModel
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.dispatch import ConvProblem, Device, Dispatcher, ProblemError
from kernelwright.dispatch.recording.trace import entry
from kernelwright.dispatch.testdata import mocks
from recorded.stand_in import stand_in

MODEL = ConvTimeModel()
CORES = 2
SETS = {"sm_90a": "convolution:default", "gfx942": "convolution:default", "x86_64_v4": "convolution:tests"}
# The model's processor takes dot products as fast as other arithmetic.
PROCESSOR = Device("cpu", compute_units=CORES, features="avx512_bf16 avx512_vnni")
DEVICES = {"sm_90a": "cuda:0", "gfx942": "sim:gfx942", "x86_64_v4": PROCESSOR}


@pytest.fixture(scope="module", params=SETS)
def compared(request: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Dispatcher, dict[str, Kernel]]:
    mocks.native_library()
    kernels = expand_set(SETS[request.param], load(request.param)).kernels
    kernels = kernels[:: max(1, len(kernels) // 30)]
    library = stand_in(kernels, tmp_path_factory.mktemp(request.param))
    dispatcher = Dispatcher(library, device=DEVICES[request.param])
    return dispatcher, {one.identity: one for one in kernels}


@st.composite
def problems(draw: st.DrawFn) -> ConvProblem | None:
    """With channels of whole vectors, and points and lines that TMA reads: what kernels ask besides is not compared."""
    dims, groups = draw(st.sampled_from([1, 2, 2, 3])), draw(st.sampled_from([1, 1, 2, 8, 64]))
    each, depthwise = st.sampled_from([8, 16, 64]), groups == 64
    c, k = (groups * (1 if depthwise else draw(each)) for _ in range(2))
    points = draw(st.sampled_from([1, 3, 5, 7]))
    direction = draw(st.sampled_from(["forward", "backward_data", "backward_weight"]))
    fields: dict[str, Any] = {"stride": draw(st.integers(1, 2)), "pad_left": draw(st.sampled_from([0, points // 2]))}
    if direction == "forward":
        fields |= {"bias": draw(st.booleans()), "activation": draw(st.sampled_from(["none", "relu"]))}
    if direction == "backward_weight":
        fields["split_k"] = draw(st.sampled_from([0, 0, 1, 4]))
    size = [draw(st.integers(1, 64)) for _ in range(dims)]
    try:
        return ConvProblem(
            direction, draw(st.integers(1, 64)), c, k, size, [points] * dims, groups=groups,
            dtype=draw(st.sampled_from(["bf16", "fp16", "fp32"])), **fields,
        )  # fmt: skip
    except ProblemError:  # the filter is larger than the image
        return None


@settings(deadline=None, max_examples=60)  # other builds share the machine
@given(problem=problems())
def test_the_generator_predicts_what_the_dispatcher_does(
    compared: tuple[Dispatcher, dict[str, Kernel]], problem: ConvProblem | None
) -> None:
    dispatcher, kernels = compared
    if problem is None:
        return
    (arch,) = {load(kernel.arch).name for kernel in kernels.values()}
    modelled = MODEL.read(entry(problem, arch).problem)
    for ranked in dispatcher.explain(problem).stages[0].kernels:
        units = CORES if arch == "x86_64_v4" else None
        us = MODEL.microseconds(kernels[ranked.identity], modelled, load(arch), units)
        if ranked.estimate is None:
            assert us is None, (ranked.name, ranked.reason)
        elif us is not None:  # the stand-ins lack conditions of memory
            assert us == pytest.approx(ranked.estimate.total_us, rel=1e-9, abs=5.1e-4), ranked.name
        else:
            assert "depthwise" in ranked.name or arch == "gfx942", ranked.name
