"""Numbers of problems and kernels by name, and the families of problems."""

from __future__ import annotations

import math

import pytest

from kernelwright.codegen.heuristics.schema import schema_of
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.tile_engine.problems.networks import networks
from kernelwright.tile_engine.problems.registry import problems
from kernelwright.tile_engine.registry import learnable, measurable

LEARNING, CONVOLUTION = learnable("convolution"), measurable("convolution")
STEM = {"n": 2, "c": 3, "k": 64, "hi": 224, "wi": 224, "y": 7, "x": 7, "stride_h": 2, "stride_w": 2, "dtype": "bf16"}
SPEC = {"tile": {"m": 128, "n": 64}, "wave": {"m": 1}, "depthwise": False}


@pytest.mark.parametrize(
    ("direction", "more", "pitch"),
    [("forward", {}, 4), ("backward_data", {}, 3), ("forward", {"c": 17}, 0), ("forward", {"x": 1}, 0)],
)
def test_images_of_few_channels_are_folded(direction: str, more: dict[str, int], pitch: int) -> None:
    record = CONVOLUTION.read({**STEM, **more, "direction": direction})
    inputs = LEARNING.inputs(record, SPEC, 0)
    assert inputs is not None and inputs["pitch"] == pitch


def test_every_input_of_the_schema_is_a_number_and_every_shipped_kernel_can_be_scored() -> None:
    schema = schema_of("convolution")
    (selection,) = select("set", "convolution:release", ["sm_90a"], load_archs())
    specs = [kernel.spec.model_dump(mode="json") for kernel in selection.kernels]
    assert len(specs) > 20
    for direction in ("forward", "backward_data", "backward_weight"):
        for record in problems(CONVOLUTION, f"conv-tuning-{direction}-2d-bf16")[::20]:
            for spec in specs:
                read = LEARNING.inputs(record, spec, 6)
                assert (read is None) == (direction == "backward_weight" and record["g"] == record["c"])
                if read is not None:
                    inputs = {**read, "units": 132.0}
                    assert set(inputs) == set(schema.inputs)
                    assert all(map(math.isfinite, schema.values(inputs)))


def test_what_is_posed_has_a_family() -> None:
    known = {network.family for network in networks()}
    assert len(known) > 8
    for key in ("conv-tuning-forward-2d-bf16", "conv-tuning-backward_weight-3d-bf16", "conv-validation-bf16"):
        assert {LEARNING.family(problem) for problem in problems(CONVOLUTION, key)} <= known
    assert LEARNING.family(CONVOLUTION.read(STEM)) not in known
