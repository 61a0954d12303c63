"""The models that ship are whole, see today's features, and are for kernels of the release set."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.codegen.heuristics.emit import emit
from kernelwright.codegen.heuristics.model import read_model
from kernelwright.codegen.selecting.selection import load_archs, select

FOLDER = Path(__file__).parents[3] / "kernels" / "convolution"


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_a_model_of_the_release_library_can_be_compiled(dtype: str) -> None:
    model = read_model(FOLDER / f"release_{dtype}.json")
    assert (model.op, model.dtype, model.arch) == ("convolution", dtype, "sm_90a")
    assert "kw_heuristic_entry" in emit(model, "release")
    (selection,) = select("set", "conv_release", [model.arch], load_archs())
    assert sum(kernel.spec.dtype == dtype for kernel in selection.kernels) >= 10
