from __future__ import annotations

import pickle
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from kernelwright.dispatch import (
    AttentionProblem,
    ConvProblem,
    Dispatcher,
    GemmProblem,
    KernelEntry,
    KernelLibrary,
    NoKernelError,
)
from kernelwright.dispatch.core import operation, refusal
from kernelwright.dispatch.operations.norm import NormProblem
from kernelwright.dispatch.testdata import mocks
from kernelwright.problems.short_names import short_name

TILE = {"m": 128, "n": 128, "k": 32}
HEAD = "none of 4 kernels serves it (selection auto, ranked by predicted time): "
SAID = f"{HEAD}k1: m is odd; k2: k is odd"


def gemm_spec(dtype: str, layout: str = "rcr", **fields: Any) -> dict[str, Any]:
    types = {"dtype_a": dtype, "dtype_b": dtype, "dtype_c": dtype, "dtype_acc": "fp32"}
    return {"op": "gemm", **types, "layout": layout, "tile": TILE, "pipeline": "packed", "activation": "none", **fields}


class Kernels:
    """A dispatcher that refuses everything, kernels in this order."""

    device = "sim:gfx942"

    def __init__(self, *specs: dict[str, Any]) -> None:
        entries = [KernelEntry(f"k{i}", f"{i:064}", "x86_64_v3", MappingProxyType(one)) for i, one in enumerate(specs)]
        self.kernels = {one.identity: one for one in entries}

    def explain(self, problem: Any) -> str:
        kernels = ",".join(f'{{"identity":"{one}","reason":"m is odd"}}' for one in self.kernels)
        return f'{{"kernels":[{kernels}]}}'


@pytest.mark.parametrize(
    ("problem", "nearest"),
    [
        (GemmProblem(8, 8, 8, dtype="bf16", layout="rrr"), "bf16 rcr 128x128x32, which has layout rcr, not rrr"),
        (
            GemmProblem(8, 8, 8, dtype="bf16", num_d=1, activation="silu"),
            "bf16 rcr 128x128x32 +D gelu, which has activation gelu, not silu",
        ),
        (GemmProblem(8, 8, 8, dtype="bf16", batch=3), "bf16 rcr 128x128x32, which has batched False, not True"),
    ],
)
def test_the_nearest_kernel_and_what_it_lacks(problem: GemmProblem, nearest: str) -> None:
    specs = (
        gemm_spec("fp32", activation="any", num_d=4),
        gemm_spec("bf16"),
        gemm_spec("bf16", num_d=1, activation="gelu"),
    )
    reason, first, make = refusal.lines(problem, Kernels({"op": "convolution"}, *specs), SAID)
    assert first.startswith(f"nearest: {nearest}")
    assert reason == f"{HEAD}{nearest.partition(',')[0]}: m is odd"  # alone of those in SAID
    call = make.partition("registry.add_problems([")[2].partition("])")[0]
    assert eval(call, {"GemmProblem": GemmProblem}) == problem and "lda" not in call  # as short as can be
    assert "kernel_set(problems=…)" in make


@pytest.mark.parametrize(
    ("problem", "nearest"),
    [
        (GemmProblem(8, 8, 8, dtype="bf16"), "bf16 rcr 128x128x32"),
        (GemmProblem(8, 8, 8, dtype="fp32", num_d=2, activation="silu"), "fp32 rcr 128x128x32 any epilogue"),
    ],
)
def test_a_kernel_whose_fields_fit_has_its_reason_alone(problem: GemmProblem, nearest: str) -> None:
    kernels = Kernels(gemm_spec("fp32", activation="any", num_d=4), gemm_spec("bf16"))
    reason, make = refusal.lines(problem, kernels, SAID)
    assert reason == f"{HEAD}{nearest}: m is odd" and make.startswith("to make one")


def test_kernels_of_other_operations_are_not_near() -> None:
    hints = refusal.lines(ConvProblem("forward", 1, 8, 8, (4, 4), (1, 1)), Kernels(gemm_spec("fp32")), SAID)
    assert len(hints) == 2 and hints[1].startswith("to make one: registry.add_problems([ConvProblem(")


def test_an_operation_without_kernels_is_said_in_one_line(tmp_path: Path) -> None:
    mocks.native_library()
    dispatcher = Dispatcher([KernelLibrary.load(mocks.write_library(tmp_path))])
    with pytest.raises(NoKernelError) as caught:
        dispatcher.plan(NormProblem("rms", 8, 64, "bf16"))
    reason, load, make = str(caught.value).splitlines()
    assert reason.startswith("none of 9 kernels serves rms norm bf16 ")
    assert reason.endswith("): no library in use has kernels of rms norm")
    assert load == (
        "give the dispatcher KernelLibrary.load_installed('cpu', 'norm') too; if no such wheel is installed: "
        "pip install kernelwright-kernels-norm-x86-64-v3"
    )
    assert make.startswith("to make one: registry.add_problems([NormProblem(")


def test_operations_of_others_have_no_wheel_here(monkeypatch: pytest.MonkeyPatch) -> None:
    class Made:
        name = "fft, forward"

    monkeypatch.setattr(operation, "of_problem", lambda problem: Made)
    assert refusal._library_of(None, Kernels()).startswith("load a library that has them")


def test_the_nearest_norm_and_attention() -> None:
    norm = {"op": "norm", "kind": "rms", "direction": "forward", "dtype": "fp32", "dtype_y": "fp32"}
    bf16 = {**norm, "dtype": "bf16", "dtype_y": "bf16"}
    quantised = NormProblem("rms", 8, 64, "bf16", "int8")
    assert refusal.lines(quantised, Kernels(norm, bf16), SAID)[:2] == (
        f"{HEAD}k1: m is odd", "nearest: k1, which has dtype_y bf16, not int8"
    )  # fmt: skip
    fwd = {"op": "attention", "family": "fwd", "dtype": "bf16", "hdim_q": 64, "hdim_v": 64, "mask": "none"}
    causal = AttentionProblem("forward", 1, 2, 2, 16, 16, 80, dtype="bf16", mask="top_left")
    said = refusal.lines(causal, Kernels(fwd, {**fwd, "hdim_q": 128, "hdim_v": 128}), SAID)
    assert said[1] == "nearest: fwd bf16 h128, which has mask none, not top_left"


def test_a_kernel_asked_for_by_name_has_its_own_reason() -> None:
    class Named(Kernels):
        def explain(self, problem: Any) -> str:
            return super().explain(problem)[:-1] + ',"selection":"explicit"}'

    said = "none of 2 kernels serves it (selection explicit, ranked by name): k0: not now"
    assert refusal.lines(GemmProblem(8, 8, 8, dtype="bf16"), Named(gemm_spec("fp32"), gemm_spec("bf16")), said)[0] == (
        "none of 2 kernels serves it (selection explicit, ranked by name): fp32 rcr 128x128x32: not now"
    )


def test_specs_have_short_names() -> None:
    integers = gemm_spec("int8", dtype_c="int32", batched=True)
    assert short_name(integers, "name") == "int8->int32 rcr 128x128x32 batched"
    conv: dict[str, Any] = {
        "op": "convolution",
        "direction": "forward",
        "dtype": "bf16",
        "layout": "nhwgc",
        "tile": TILE,
    }
    conv |= {"pipeline": "compv4", "bias": True, "activation": "relu"}
    assert short_name(conv, "name") == "forward bf16 nhwgc 128x128x32 compv4 +bias relu"
    tile = {"m0": 128, "n0": 64}
    attention: dict[str, Any] = {
        "op": "attention",
        "family": "fwd",
        "dtype": "bf16",
        "hdim_q": 128,
        "tile": tile,
        "mask": "generic",
    }
    assert short_name({**attention, "lse": True}, "name") == "fwd bf16 h128 128x64 generic mask lse"
    assert short_name({"op": "gemm"}, "name") == short_name({"op": "made up"}, "name") == "name"


def test_an_error_says_what_is_missing_in_one_line_and_then_what_to_do(tmp_path: Path) -> None:
    mocks.native_library()
    dispatcher = Dispatcher([KernelLibrary.load(mocks.write_library(tmp_path))])
    with pytest.raises(NoKernelError) as caught:
        dispatcher.plan(GemmProblem(5, 9, 64, dtype="bf16"))
    reason, *advice = str(caught.value).splitlines()
    assert reason == caught.value.reason and reason.startswith("none of 9 kernels serves gemm bf16 rcr 5x9x64")
    assert "a_gemm_fp32_rcr_exotic and 6 more: dtype_a is bf16, this kernel serves fp32; " in reason
    assert "registry.add_problems([GemmProblem(m=5, n=9, k=64, dtype='bf16')])" in advice[-1]
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value) and type(again) is NoKernelError


def test_reasons_have_short_names() -> None:
    kernels = Kernels(gemm_spec("fp32"), gemm_spec("bf16")).kernels
    said = refusal.in_short("k0 and 1 more: k is odd; k1: no; k12: other", kernels)
    assert said == "fp32 rcr 128x128x32 and 1 more: k is odd; bf16 rcr 128x128x32: no; k12: other"
