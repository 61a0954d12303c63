from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelwright.arch import load
from kernelwright.codegen.kernel import Kernel
from kernelwright.codegen.operations.gemm.spec import gemm_spec
from kernelwright.codegen.operations.gemm.time_model.model import GemmTimeModel
from kernelwright.codegen.operations.gemm.time_model.slices import slices
from kernelwright.codegen.selecting.filters import view
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.selecting.specs import parse_kernel
from kernelwright.codegen.violations import SpecError

MODEL = GemmTimeModel()
SETS = {"sm_90a": "bf16_rcr_all", "gfx942": "bf16_rcr_all", "x86_64_v4": "bf16_rcr_all"}


def kernels(arch: str) -> list[Kernel]:
    return [one for one in expand_set(SETS[arch], load(arch)).kernels if view(one)["variant"] == "standard"]


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize("arch", SETS)
@settings(deadline=None)  # other builds share the machine
@given(st.integers(1, 4096), st.integers(1, 512), st.integers(1, 512))
def test_more_work_never_takes_less_time(arch: str, m: int, n: int, k: int) -> None:
    architecture = load(arch)
    small, large = (MODEL.read({"m": m * x, "n": 16 * n * x, "k": 16 * k * x, "dtype": "bf16"}) for x in (1, 4))
    for kernel in kernels(arch)[:4]:
        low, high = MODEL.microseconds(kernel, small, architecture), MODEL.microseconds(kernel, large, architecture)
        assert (low is None) == (high is None) and (low is None or 0 < low <= high)  # type: ignore[operator]


def test_constants_fitted_to_a_device_are_those_of_its_architecture() -> None:
    """Another NVIDIA architecture is predicted by numbers of its own file, unless it names the fitted formulas."""
    hopper, problem = load("sm_90a"), MODEL.read({"m": 4096, "n": 4096, "k": 4096, "dtype": "bf16"})
    other = hopper.model_copy(update={"name": "other", "time_model": "tiles"})
    for kernel in kernels("sm_90a")[:4]:
        fitted, general = (MODEL.microseconds(kernel, problem, arch) for arch in (hopper, other))
        assert fitted is not None and general is not None and abs(fitted - general) > 1
        assert MODEL.microseconds(kernel, problem, other.model_copy(update={"time_model": "hopper"})) == fitted


@pytest.mark.parametrize(
    ("fields", "served"),
    [
        ({}, True),
        ({"dtype": "fp16"}, False),
        ({"layout": "rrr"}, False),
        ({"batch": 2}, False),
        ({"activation": "relu"}, False),
        ({"num_d": 1}, False),
        ({"split_k": 2}, False),
        ({"b_format": 7}, False),
        ({"n": 100}, False),  # rows of 200 bytes
        ({"k": 100}, False),
        ({"lda": 260}, False),
        ({"lda": 264}, True),
        ({"k": 0, "layout": "rcr", "lda": 8, "ldb": 4}, True),  # neither A nor B is read
        ({"alpha": 2.0, "beta": 0.5}, True),
        ({"m": 33}, True),
    ],
)
def test_what_a_plain_tma_kernel_serves(fields: dict[str, Any], served: bool) -> None:
    kernel = next(one for one in kernels("sm_90a") if not view(one)["split_k"])
    problem = MODEL.read({"m": 32, "n": 128, "k": 256, "dtype": "bf16", **fields})
    assert (MODEL.microseconds(kernel, problem, load("sm_90a")) is not None) is served


def test_rows_that_overlap_are_no_problem() -> None:
    with pytest.raises(SpecError, match="lda is 128, too small"):
        MODEL.read({"m": 32, "n": 128, "k": 256, "dtype": "bf16", "lda": 128})


@pytest.mark.parametrize("fields", [
    {}, {"activation": "silu"}, {"num_d": 4, "d_op": "multiply", "activation": "gelu"}, {"batch": 3, "num_d": 1},
])  # fmt: skip
def test_a_kernel_of_any_epilogue_serves_each_and_costs_no_less(fields: dict[str, Any]) -> None:
    arch = load("x86_64_v4")
    shape: dict[str, Any] = {
        "op": "gemm",
        "layout": "rcr",
        "dtype": "fp32",
        "tile": [168, 4096, 512],
        "warp_tile": [14, 32, 1],
        "batched": True,
    }
    asked = {key: fields[key] for key in ("activation", "num_d", "d_op") if key in fields}
    exact, any_one = (parse_kernel(shape | epilogue, arch) for epilogue in (asked, {"activation": "any"}))
    problem = MODEL.read({"m": 512, "n": 512, "k": 256, "dtype": "fp32", **fields})
    times = [MODEL.microseconds(kernel, problem, arch) for kernel in (exact, any_one)]
    assert None not in times and times[0] < times[1]  # type: ignore[operator]


def test_slices_are_in_order_and_stated_ones_alone() -> None:
    spec = gemm_spec(next(one for one in kernels("sm_90a") if view(one)["split_k"]))
    counts = slices(spec, MODEL.read({"m": 16, "n": 1024, "k": 65536, "dtype": "bf16", "split_k": 0}), "cutlass", 132)
    assert counts == sorted(set(counts)) and counts[0] == 1 and counts[-1] == 32
    assert slices(spec, MODEL.read({"m": 16, "n": 64, "k": 64, "dtype": "bf16", "split_k": 3}), "cutlass", 132) == [3]


def test_problems_that_mean_the_same_have_one_key() -> None:
    one = MODEL.read({"m": 1, "n": 2, "k": 3, "dtype": "bf16", "split_k": 0})
    other = MODEL.read({"m": 1, "n": 2, "k": 3, "dtype_a": "bf16", "dtype_b": "bf16", "dtype_c": "bf16"})
    assert MODEL.key(one) == MODEL.key(other) != MODEL.key(MODEL.read({"m": 1, "n": 2, "k": 3, "dtype": "fp16"}))
