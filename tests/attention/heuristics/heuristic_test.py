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
from kernelwright.dispatch import Device, Dispatcher, Heuristic, KernelLibrary
from kernelwright.tile_engine.registry import learnable, measurable

pytestmark = pytest.mark.skipif("KERNELWRIGHT_TREES" not in os.environ, reason="KERNELWRIGHT_TREES is not set")

ARCH = Device("cpu").archs[0]
BEHIND = 1e6  # of heuristic.c.jinja
MOST = 300.0  # of a problem's features in the training data that the model claims


@pytest.fixture(scope="module")
def library() -> KernelLibrary:
    return KernelLibrary.load_for("cpu", os.environ.get("KERNELWRIGHT_KERNELS") or files("attention") / "cpu_attention")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Model, Heuristic]:
    folder = tmp_path_factory.mktemp("model")
    content = random_content(3, arch=ARCH, op="attention", most=MOST)
    write_model({**content, "kernel_hull": {"spare_widths": [0.0, 0.0]}}, folder / "model.json")
    out = folder / "libpick.so"
    trees = os.environ["KERNELWRIGHT_TREES"]
    assert main(["heuristic", str(folder / "model.json"), "--output", str(out), "--trees", trees]) == 0
    return read_model(folder / "model.json"), Heuristic(out)


def row_of(inputs: Any) -> list[float]:
    return schema_of("attention").values({**inputs, "units": len(os.sched_getaffinity(0))})


def kind_of(inputs: Any) -> dict[str, float]:
    schema = schema_of("attention")
    return dict(zip(schema.kernel_features, schema.kernel_values({**inputs, "units": 1.0}), strict=True))


def attention_record(**more: Any) -> dict[str, Any]:
    heads = {"batch": 2, "nhead_q": 8, "nhead_k": 2, "hdim_q": 64, "dtype": "fp32", "mask": "bottom_right"}
    return dict(measurable("attention").read({**heads, **more}))


RECORDS = [
    attention_record(seqlen_q=1, seqlen_k=3000, page_size=16, mask="none"),
    attention_record(seqlen_q=3, seqlen_k=777, page_size=64, window_left=128),
    attention_record(seqlen_q=200, seqlen_k=500, ragged=1),
    attention_record(seqlen_q=130, soft_cap=20.0, batch=1),
    attention_record(seqlen_q=40, hdim_q=80, nhead_k=8, bias="alibi"),
]


@pytest.mark.parametrize("record", RECORDS, ids=["decode", "window", "ragged", "cap", "alibi"])
def test_the_compiled_model_scores_pairs_as_the_model_does(
    record: dict[str, Any], library: KernelLibrary, made: tuple[Model, Heuristic]
) -> None:
    model, heuristic = made
    problem = measurable("attention").problem(record)
    stage = Dispatcher(library, selection=heuristic).explain(problem).stages[0]
    specs = {kernel.identity: kernel.spec for kernel in library.kernels}
    assert stage.pairs and stage.pairs[0][0] == stage.chosen
    assert ("by pick" in stage.reason) == (len(stage.pairs) > 1)
    for kernel, pair in stage.pairs:
        inputs = learnable("attention").inputs(record, specs[kernel.identity], pair.value)
        assert inputs is not None
        assert pair.score == -model.predict(row_of(inputs)) + (0.0 if model.knows(kind_of(inputs)) else BEHIND)


def test_kernels_of_another_kind_than_the_training_data_come_behind(
    library: KernelLibrary, made: tuple[Model, Heuristic]
) -> None:
    """Kernels of wider heads compute narrower ones by padding: a model that saw none of that does not prefer them."""
    problem = measurable("attention").problem(attention_record(seqlen_q=200, mask="none", hdim_q=128))
    stage = Dispatcher(library, selection=made[1]).explain(problem).stages[0]
    specs = {kernel.identity: kernel.spec for kernel in library.kernels}
    padded = [int(specs[kernel.identity]["hdim_q"]) > 128 for kernel, _ in stage.pairs]
    assert 0 < sum(padded) < len(padded) and padded == sorted(padded)


def test_the_number_of_splits_is_learned(library: KernelLibrary, made: tuple[Model, Heuristic]) -> None:
    stage = Dispatcher(library, selection=made[1]).explain(measurable("attention").problem(RECORDS[0])).stages[0]
    split = next(kernel for kernel in stage.kernels if len(kernel.values) > 5)
    assert len({value.score for value in split.values}) > 2
    assert split.choices == split.values[0].choices == f"num_splits={split.values[0].value}"


@pytest.mark.parametrize(
    "record",
    [
        attention_record(seqlen_q=64, direction="backward"),
        attention_record(seqlen_q=64, direction="append", seqlen_k=100, page_size=16, mask="none"),
    ],
    ids=["gradients", "append"],
)
def test_other_operations_are_left_to_predicted_times(
    record: dict[str, Any], library: KernelLibrary, made: tuple[Model, Heuristic]
) -> None:
    problem = measurable("attention").problem(record)
    learned, analytic = Dispatcher(library, selection=made[1]), Dispatcher(library)
    assert learned.select(problem).kernel == analytic.select(problem).kernel
    assert not any("by pick" in stage.reason.replace("not ranked by", "") for stage in learned.explain(problem).stages)
