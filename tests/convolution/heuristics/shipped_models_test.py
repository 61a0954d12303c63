"""The models that ship are whole, see today's features, and are for kernels of the release set."""

from __future__ import annotations

from pathlib import Path

from kernelwright.codegen.heuristics.emit import emit
from kernelwright.codegen.heuristics.model import read_model
from kernelwright.codegen.selecting.selection import load_archs, select

FOLDER = Path(__file__).parents[3] / "kernels" / "convolution"


def test_the_model_of_the_release_library_can_be_compiled() -> None:
    model = read_model(FOLDER / "release_16bit.json")
    assert (model.op, model.dtypes, model.arch) == ("convolution", ("bf16", "fp16"), "sm_90a")
    assert "kw_heuristic_entry" in emit(model, "release")
    (selection,) = select("set", "convolution:release", [model.arch], load_archs())
    for dtype in model.dtypes:
        assert sum(kernel.spec.dtype == dtype for kernel in selection.kernels) >= 10
