"""The models that ship are whole, see today's features, and are for kernels of the release set."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelwright.codegen.heuristics.emit import emit
from kernelwright.codegen.heuristics.model import read_model
from kernelwright.codegen.selecting.selection import load_archs, select

FOLDER = Path(__file__).parents[3] / "kernels" / "gemm"


@pytest.mark.parametrize(("name", "dtypes"), [("release_16bit", ("bf16", "fp16")), ("release_fp8", ("fp8",))])
def test_a_model_of_the_release_library_can_be_compiled(name: str, dtypes: tuple[str, ...]) -> None:
    model = read_model(FOLDER / f"{name}.json")
    assert (model.op, model.dtypes, model.arch) == ("gemm", dtypes, "sm_90a")
    assert "kw_heuristic_entry" in emit(model, "release")
    (selection,) = select("set", "gemm:release", [model.arch], load_archs())
    for dtype in dtypes:
        assert sum(kernel.spec.dtype_a == dtype for kernel in selection.kernels) >= 10
