"""A model of random trees is compiled, loaded and asked through the dispatcher: C and Python agree to the last bit."""

from __future__ import annotations

import os
from importlib.resources import files
from typing import Any

import pytest

from kernelwright.codegen.heuristics.model import Model, read_model, write_model
from kernelwright.codegen.heuristics.schema import schema_of
from kernelwright.codegen.heuristics.testing.random_model import random_content
from kernelwright.codegen.interface.cli import main
from kernelwright.dispatch import ConvProblem, Device, Dispatcher, Heuristic, KernelLibrary
from kernelwright.tile_engine.registry import learnable, measurable

pytestmark = pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")

ARCH = Device("cpu").archs[0]
MOST = 60.0  # of a problem's features in the training data that the model claims


@pytest.fixture(scope="module")
def library() -> KernelLibrary:
    named = os.environ.get("KERNELWRIGHT_CONV_KERNELS") or files("convolution") / "cpu_convolution"
    return KernelLibrary.load_for("cpu", named)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Heuristic]:
    folder = tmp_path_factory.mktemp("model")
    write_model(random_content(5, arch=ARCH, op="convolution", most=MOST), folder / "model.json")
    out = folder / "libpick.so"
    trees = os.environ["KERNELWRIGHT_TREES"]
    assert main(["heuristic", str(folder / "model.json"), "--output", str(out), "--trees", trees]) == 0
    return read_model(folder / "model.json"), Heuristic(out)


def conv_record(direction: str, **more: Any) -> dict[str, Any]:
    plain = {"n": 2, "c": 32, "k": 64, "hi": 14, "wi": 17, "y": 3, "x": 3, "pad_h": 1, "pad_w": 1, "dtype": "fp32"}
    return dict(measurable("convolution").read({"direction": direction, **plain, **more}))


RECORDS = [
    conv_record("forward"),
    conv_record("forward", c=3, y=7, x=7, stride_h=2, stride_w=2),  # folded on a GPU
    conv_record("backward_data", stride_h=2, stride_w=2, di=9, z=3, pad_d=1),
    conv_record("backward_weight", n=16, c=48, g=4),
    conv_record("forward", c=64, g=64),
]


@pytest.mark.parametrize("record", RECORDS, ids=["forward", "stem", "data in 3D", "weight of groups", "depthwise"])
def test_the_compiled_model_scores_pairs_as_the_model_does(
    record: dict[str, Any], library: KernelLibrary, made: tuple[Model, Heuristic]
) -> None:
    model, heuristic = made
    problem = measurable("convolution").problem(record)
    stage = Dispatcher(library, selection=heuristic).explain(problem).stages[0]
    specs = {kernel.identity: kernel.spec for kernel in library.kernels}
    assert stage.pairs and stage.pairs[0][0] == stage.chosen
    assert ("by pick" in stage.reason) == (len(stage.pairs) > 1)
    for kernel, pair in stage.pairs:
        inputs = learnable("convolution").inputs(record, specs[kernel.identity], pair.value)
        assert inputs is not None
        row = schema_of("convolution").values({**inputs, "units": len(os.sched_getaffinity(0))})
        assert pair.score == -model.predict(row)


def test_other_problems_are_left_to_predicted_times(library: KernelLibrary, made: tuple[Model, Heuristic]) -> None:
    learned, analytic = Dispatcher(library, selection=made[1]), Dispatcher(library)
    other_type = ConvProblem("forward", 1, 8, 16, (7, 9), 3, dtype="bf16")
    without_images = ConvProblem("forward", 0, 8, 16, (7, 9), 3)
    depthwise_weight = ConvProblem("backward_weight", 1, 16, 16, (7, 9), 3, groups=16)
    for problem in (other_type, without_images, depthwise_weight):
        assert learned.select(problem).kernel == analytic.select(problem).kernel
        assert "best of" not in learned.select(problem).reason
