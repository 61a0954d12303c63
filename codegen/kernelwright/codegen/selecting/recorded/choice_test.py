from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernelwright.arch import load
from kernelwright.codegen.selecting.filters import view
from kernelwright.codegen.selecting.recorded.choice import choose_kernels
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.codegen.selecting.sets import expand_set
from kernelwright.codegen.violations import SpecError

SM_90A = load("sm_90a")


def trace(*problems: dict[str, Any], count: int = 1) -> dict[str, Any]:
    listed = [{"op": "gemm", "arch": "sm_90a", "problem": {"split_k": 0, **one}, "count": count} for one in problems]
    return {"version": 1, "problems": listed}


FEW = {"m": 1, "n": 4096, "k": 4096, "dtype": "bf16"}
MANY = {"m": 4096, "n": 4096, "k": 4096, "dtype": "bf16"}
FUSED = {**MANY, "num_d": 1, "ld_multi_d": [0], "activation": "gelu"}


def test_each_kernel_says_what_it_is_there_for() -> None:
    chosen = choose_kernels({"trace": trace(FEW, MANY, FUSED)}, SM_90A)
    lines = {view(kernel)["name"]: chosen.purposes[kernel.identity] for kernel in chosen.kernels}
    assert sum(map(len, lines.values())) == 3 and all(lines.values())
    (fused,) = (line for name, (line, *_) in lines.items() if "Gelu" in name)
    assert fused.startswith(
        "gemm split_k=0 m=4096 n=4096 k=4096 dtype=bf16 num_d=1 ld_multi_d=[0] activation=gelu: 1 times"
    )
    assert fused.endswith("us predicted")
    few = next(name for name, texts in lines.items() if any("m=1 " in line for line in texts))
    assert "_16x" in few or "_64x" in few  # small tiles for one row


LAYER = {"n": 8, "c": 64, "k": 128, "size": [28, 28], "filter": [3, 3], "pad_left": [1, 1], "dtype": "bf16"}


def convolutions(arch: str, **fields: Any) -> dict[str, Any]:
    directions = ("forward", "backward_data", "backward_weight")
    problems = [{"direction": direction, **LAYER, **fields} for direction in directions]
    listed = [{"op": "convolution", "arch": arch, "problem": one, "count": 2} for one in problems]
    return {"version": 1, "problems": listed}


@pytest.mark.parametrize("arch", ["sm_90a", "gfx942", "x86_64_v4"])
def test_convolutions_have_kernels_of_each_direction(arch: str) -> None:
    chosen = choose_kernels({"trace": convolutions(arch)}, load(arch))
    by_direction = {view(kernel)["direction"]: chosen.purposes[kernel.identity] for kernel in chosen.kernels}
    assert set(by_direction) == {"forward", "backward_data", "backward_weight"}
    for direction, (line,) in by_direction.items():
        assert line.startswith(f"convolution direction={direction} n=8 c=64 k=128 size=[28, 28]"), line
        assert line.endswith("us predicted") and ": 2 times, " in line


HEADS = {"batch": 2, "heads_q": 8, "heads_kv": 2, "seqlen_q": 512, "seqlen_k": 512, "hdim_q": 128, "dtype": "bf16"}
DECODE = {**HEADS, "seqlen_q": 1, "seqlen_k": 16384, "direction": "forward"}
APPEND = {"batch": 2, "heads_kv": 2, "seqlen_new": 1, "hdim_q": 128, "capacity": 4096, "dtype": "bf16"}


def attention(*problems: dict[str, Any]) -> dict[str, Any]:
    listed = [("attention append" if "capacity" in one else "attention", one) for one in problems]
    return {"version": 1, "problems": [{"op": op, "problem": one, "count": 7} for op, one in listed]}


def families(arch: str, *problems: dict[str, Any], **options: Any) -> dict[str, list[str]]:
    """What each chosen kernel is there for, by family."""
    chosen = choose_kernels({"trace": attention(*problems), **options}, load(arch))
    assert all(chosen.purposes[kernel.identity] for kernel in chosen.kernels)
    by_family: dict[str, list[str]] = {}
    for kernel in chosen.kernels:
        by_family.setdefault(view(kernel)["family"], []).extend(chosen.purposes[kernel.identity])
    return by_family


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize("arch", ["sm_90a", "gfx942", "x86_64_v4"])
def test_attention_brings_the_kernels_of_all_stages(arch: str) -> None:
    backward = {**HEADS, "direction": "backward", "mask": "bottom_right"}
    by_family = families(arch, {**HEADS, "direction": "forward"}, backward, APPEND)
    stages = {"bwd_dot_do_o", "bwd_dq_dk_dv"} | ({"bwd_convert_dq"} if arch != "sm_90a" else set())
    assert set(by_family) == {"fwd", "fwd_appendkv"} | stages
    assert all("direction=backward" in line for stage in stages for line in by_family[stage])
    assert all(line.endswith("us predicted") for line in by_family["bwd_dq_dk_dv"])
    assert all(line.endswith("us predicted, a further stage") for line in by_family["bwd_dot_do_o"])
    assert by_family["fwd_appendkv"][0].startswith("attention append batch=2 heads_kv=2 seqlen_new=1")


@pytest.mark.thorough(keep=1)
@pytest.mark.parametrize("arch", ["sm_90a", "gfx942"])
def test_long_decodes_bring_what_combines_their_splits(arch: str) -> None:
    assert set(families(arch, DECODE)) == {"fwd_splitkv", "fwd_splitkv_combine"}
    (whole,) = families(arch, DECODE, budget_kernels=1).items()
    assert whole[0] in ("fwd", "fwd_splitkv") and "further stage" not in whole[1][0]


def test_measured_plans_of_attention_bring_their_stages(tmp_path: Path) -> None:
    kernels = {view(kernel)["family"]: kernel for kernel in expand_set("attention:essential", SM_90A).kernels}
    row = {"direction": "forward", "batch": 2, "seqlen_q": 1, "seqlen_k": 16384, "nhead_q": 8, "nhead_k": 2}
    row |= {"hdim_q": 128, "hdim_v": 128, "mask": "none", "window_left": -1, "window_right": -1, "bias": "none"}
    row |= {"soft_cap": 0.0, **dict.fromkeys(("sink", "ragged", "page_size", "rotary_dim", "num_splits"), 0)}
    row |= {"lse": 0, "deterministic": 0, "dtype": "bf16", "status": "ok"}
    split = {"identity": kernels["fwd_splitkv"].identity, "latency_ms": "0.02"}
    combined = {**split, "stages": kernels["fwd_splitkv_combine"].identity, "latency_ms": "0.01"}
    lines = [{**row, "stages": "", **one} for one in (split, combined)]
    path = tmp_path / "sweep.csv"
    path.write_text("\n".join([",".join(lines[0]), *(",".join(map(str, one.values())) for one in lines)]) + "\n")
    by_family = families("sm_90a", DECODE, sweep=str(path))
    assert set(by_family) == {"fwd_splitkv", "fwd_splitkv_combine"}
    assert by_family["fwd_splitkv"][0].endswith("7 times, 10.0 us measured")


def test_epilogues_that_no_set_lists_are_made() -> None:
    fused = {"m": 16, "n": 1024, "k": 256, "dtype": "fp32", "num_d": 1, "ld_multi_d": [0], "activation": "silu"}
    (kernel,) = choose_kernels({"trace": trace(fused)}, load("x86_64_v4")).kernels
    seen = view(kernel)
    assert (seen["num_d"], seen["activation"], seen["warp_tile_m"]) == (1, "silu", 8)
    problem = {"direction": "forward", **LAYER, "bias": True, "activation": "gelu"}
    listed = {"version": 1, "problems": [{"op": "convolution", "problem": problem, "count": 1}]}
    for arch in ("sm_90a", "x86_64_v4"):
        (kernel,) = choose_kernels({"trace": listed}, load(arch)).kernels
        assert (view(kernel)["bias"], view(kernel)["activation"]) == (True, "gelu")


def test_a_trace_may_hold_several_operations() -> None:
    both = trace(FEW)
    both["problems"] += convolutions("sm_90a")["problems"]
    chosen = choose_kernels({"trace": both}, SM_90A)
    assert {kernel.spec.op for kernel in chosen.kernels} == {"gemm", "convolution"}


def test_a_budget_bounds_the_set_and_says_what_it_leaves_out() -> None:
    assert len(choose_kernels({"trace": trace(FEW, MANY), "budget_kernels": 1}, SM_90A).kernels) == 1
    with pytest.raises(
        SpecError, match=r"the budget \(without one: \d kernels\) leaves no kernel for sm_90a that serves 1"
    ):
        choose_kernels({"trace": trace(FEW, MANY, {**MANY, "dtype": "fp8"}), "budget_kernels": 1}, SM_90A)


def test_candidates_may_be_a_set() -> None:
    essential = {kernel.identity for kernel in expand_set("gemm:essential", SM_90A).kernels}
    chosen = choose_kernels({"trace": trace(FEW, MANY), "set": "gemm:essential"}, SM_90A)
    assert {kernel.identity for kernel in chosen.kernels} <= essential
    with pytest.raises(SpecError, match=r"no kernel of 4 candidates for sm_90a serves 1 of 1 problems:\n  gemm .*int8"):
        choose_kernels({"trace": trace({**MANY, "dtype": "int8"}), "set": "gemm:essential"}, SM_90A)


def test_measured_times_count_instead_of_predicted_ones(tmp_path: Path) -> None:
    kernels = [kernel for kernel in expand_set("bf16_rcr_all", SM_90A).kernels if view(kernel)["variant"] == "standard"]
    slow = choose_kernels({"trace": trace(MANY), "budget_kernels": 1}, SM_90A).kernels[0]
    lines = ["kernel,m,n,k,batch,layout,dtype,dtype_c,latency_ms,status,identity"]
    fast = next(kernel for kernel in kernels if kernel != slow)
    for kernel in kernels:
        ms = "0.001" if kernel == fast else "0.5"
        lines.append(f"{kernel.name},4096,4096,4096,1,rcr,bf16,bf16,{ms},ok,{kernel.identity}")
    lines.append(f"{slow.name},4096,4096,4096,1,rcr,bf16,bf16,,wrong,{slow.identity}")
    path = tmp_path / "sweep.csv"
    path.write_text("\n".join(lines) + "\n")
    chosen = choose_kernels({"trace": trace(MANY, FEW), "sweep": str(path)}, SM_90A)
    assert fast in chosen.kernels
    assert any(line.endswith("1 times, 1.0 us measured") for line in chosen.purposes[fast.identity])
    assert any("m=1 " in line and line.endswith("predicted") for texts in chosen.purposes.values() for line in texts)
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SpecError, match="is no table of"):
        choose_kernels({"trace": trace(MANY), "sweep": str(tmp_path / "other.csv")}, SM_90A)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "write an object with trace"),
        ({"trace": {"version": 2, "problems": []}}, 'a trace is {"version": 1'),
        ({"trace": {"version": 1, "problems": []}}, "the trace holds no problem"),
        ({"trace": trace({**FEW, "tile": 3})}, "problem 0 of the trace: a GEMM problem has unknown fields tile"),
        ({"trace": trace({**FEW, "m": "1"})}, "problem 0 of the trace: .* is no GEMM problem"),
        (
            {"trace": {"version": 1, "problems": [{"op": "row norm", "problem": {}}]}},
            "no model predicts times of 'row norm'; allowed: gemm, convolution",
        ),
        ({"trace": trace(FEW), "budget_kernels": 0}, "budget_kernels is 0; allowed: a number above 0"),
        ({"trace": trace(FEW), "set": "gemm:essential", "config": {}}, "not of both"),
        ({"trace": trace(FEW), "kernels": 3}, "write an object with trace"),
    ],
)
def test_wrong_input_says_what_is_allowed(value: dict[str, Any], message: str) -> None:
    with pytest.raises(SpecError, match=message):
        choose_kernels(value, SM_90A)


def test_counts_of_all_architectures_add_up_and_files_are_read(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    one = {"op": "gemm", "problem": {**FEW, "split_k": 0}, "count": 3}
    path.write_text(json.dumps({"version": 1, "problems": [{**one, "arch": "a"}, {**one, "arch": "b", "unserved": 4}]}))
    (item,) = select("problems", {"trace": str(path)}, ["x86_64_v4"], load_archs(), "c.dtype == 'bf16'")
    assert next(line for texts in item.purposes.values() for line in texts).count(": 10 times, ") == 1
