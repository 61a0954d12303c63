"""The problems of models, and what the CPU kernels of the first example serve of them."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelwright.dispatch import Dispatcher, GemmProblem, KernelLibrary
from kernelwright.tile_engine.coverage.attention import attention_layers
from kernelwright.tile_engine.coverage.convolution import conv_problems
from kernelwright.tile_engine.coverage.layer_problem import LayerProblem, drawn
from kernelwright.tile_engine.coverage.linear import linear_problems
from kernelwright.tile_engine.coverage.served import Share, shares, total
from kernelwright.tile_engine.interface.cli import main
from kernelwright.tile_engine.problems.models import models

ROOT = Path(__file__).resolve().parents[4]
LIBRARY = os.environ.get("KERNELWRIGHT_KERNELS", str(ROOT / "examples/gemm/kernels"))


def kernels() -> str:
    return str(KernelLibrary.load_for("cpu", LIBRARY).manifest.path.parent)


@given(st.text(), st.integers(1, 20), st.integers(1, 1 << 20))
def test_draws_follow_from_the_text_alone(what: str, count: int, most: int) -> None:
    draws = drawn(what, count, most)
    assert draws == drawn(what, count, most) and len(draws) == count
    assert all(1 <= one <= most for one in draws)


def test_layers_of_models_meet_many_numbers_of_rows() -> None:
    forward = [one.problem for one in linear_problems("bf16") if one.use == "forward"]
    rows = {problem.m for problem in forward}
    assert len(forward) > 4 * len(models()) and len(rows) > 300
    for least, most in ((1, 8), (9, 64), (65, 256), (257, 1100), (1101, 16384)):
        assert sum(least <= one <= most for one in rows) > 5


def test_gradients_are_those_of_the_same_layer() -> None:
    of = [one for one in linear_problems("bf16") if one.layer == "Llama 3 8B: q, k, v"]
    by_use = {one.use: one.problem for one in of if one.use in ("forward", *(one.use for one in of))}
    forward = by_use["forward"]
    into, weight = by_use["gradient of the input"], by_use["gradient of the weight"]
    assert (into.m, into.n, into.k, into.layout) == (forward.m, forward.k, forward.n, "rrr")
    assert (weight.m, weight.n, weight.k, weight.layout) == (forward.n, forward.k, forward.m, "crr")
    assert by_use["gradient added in fp32"].dtype_c == "fp32" and by_use["gradient added in fp32"].beta == 1


def test_epilogues_are_those_of_the_models() -> None:
    fused = [one for one in linear_problems("fp16") if one.use == "forward, bias and activation"]
    (fc1, *_) = (one.problem for one in fused if one.layer == "GPT-2 XL: fc1")
    assert (fc1.activation, fc1.num_d, fc1.ld_multi_d) == ("gelu", 1, (0,))
    residual = [one for one in linear_problems("fp16") if one.use == "forward, residual"]
    (fc2, *_) = (one.problem for one in residual if one.layer == "GPT-2 XL: fc2")
    assert (fc2.activation, fc2.num_d, fc2.ld_multi_d) == ("none", 2, (0, fc2.n))
    pairs = [one.problem for one in linear_problems("fp16") if one.use == "gated pair"]
    assert Counter(problem.activation == "none" for problem in pairs)[True] * 2 == len(pairs)


def test_every_direction_and_use_has_problems() -> None:
    conv = Counter(one.problem.direction for one in conv_problems("bf16"))
    assert conv["forward"] == 4 * conv["backward_data"] == 4 * conv["backward_weight"]
    patches = [one.problem for one in conv_problems("bf16") if one.layer == "ViT-H/14: patches"]
    assert {(one.c, one.filter, one.stride) for one in patches} == {(3, (14, 14), (14, 14))}
    uses = Counter(one.use for one in attention_layers("fp16"))
    assert set(uses) == {"prefill", "decode", "append to a cache", "gradients"} and min(uses.values()) > 50


def test_plain_products_are_served_and_others_say_why_not() -> None:
    dispatcher = Dispatcher([KernelLibrary.load(kernels())])
    few = [one for one in linear_problems("fp32") if one.layer.startswith(("GPT-2 XL", "Mixtral 8x7B"))]
    columns = GemmProblem(64, 64, 64, layout="rcc")  # which no CPU kernel writes
    few.append(LayerProblem("gemm", "column-major result", "fp32", "a layer", columns))
    by_use = shares(dispatcher, few)
    plain = by_use["gemm", "forward", "fp32"]
    assert plain.problems == plain.served > 10 and not plain.example
    refused = {key: one for key, one in by_use.items() if one.served < one.problems}
    assert ("gemm", "column-major result", "fp32") in refused
    for one in refused.values():
        assert one.example and one.reasons and not any("operation is" in reason for reason in one.reasons)
    whole = total(by_use)
    assert (whole.problems, whole.served) == (
        len(few),
        len(few) - sum(one.problems - one.served for one in refused.values()),
    )


def test_the_command_prints_json_and_keeps_a_bar(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["coverage", kernels(), "--dtype", "fp32"]
    assert main([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["problems"] == sum(one["problems"] for one in document["uses"]) >= document["served"] > 0
    assert {one["operation"] for one in document["uses"]} == {"gemm"}
    assert main([*asked, "--least", "0.01"]) == 0
    text = capsys.readouterr().out
    assert f"{document['served']} of {document['problems']} problems of public models are served" in text
    assert main([*asked, "--operation", "gemm", "--operation", "attention", "--least", "1"]) == 1
    assert "is served; asked: at least 100.0%" in capsys.readouterr().err


def test_operations_without_a_kernel_are_counted_where_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["coverage", kernels(), "--operation", "attention", "--dtype", "fp32", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["served"] == 0 and {one["share"] for one in document["uses"]} == {0}


def test_a_share_is_never_rounded_up_to_the_whole() -> None:
    from kernelwright.tile_engine.interface.coverage_command import _percent

    assert (_percent(Share(10000, 9999)), _percent(Share(3, 3))) == ("99.9 %", "100.0 %")
