"""What learning reads of a spec is what the kernel's source says of itself; what is learned has a family."""

from __future__ import annotations

from kernelwright.codegen.operations.attention.cutlass import context
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.tile_engine.problems.models import models
from kernelwright.tile_engine.problems.registry import problems
from kernelwright.tile_engine.registry import learnable, measurable

LEARNING, ATTENTION = learnable("attention"), measurable("attention")
RECORD = ATTENTION.read({"batch": 2, "seqlen_q": 1, "seqlen_k": 100, "nhead_q": 8, "hdim_q": 64, "dtype": "bf16"})
FORWARD = ("fwd", "fwd_splitkv", "batch_prefill")


def test_numbers_of_kernels_are_their_traits() -> None:
    (selection,) = select("set", "attention:release", ["sm_90a"], load_archs())
    forward = [kernel for kernel in selection.kernels if kernel.spec.model_dump()["family"] in FORWARD]
    assert len(forward) > 10
    for kernel in forward:
        traits = context(kernel, selection.arch)["traits"]
        assert isinstance(traits, dict)
        inputs = LEARNING.inputs(RECORD, kernel.spec.model_dump(mode="json"), 3)
        assert inputs is not None and inputs["splits"] == 3
        number = {
            name: int(str(traits.get(name, 0))) for name in ("tile_m0", "tile_n0", "packs_heads", "blocks_per_cu")
        }
        stated = {
            **{"tile_m": number["tile_m0"], "tile_n": number["tile_n0"], "packs": number["packs_heads"]},
            **{"blocks": max(1, number["blocks_per_cu"]), "any_mask": "GENERIC" in str(traits["masks"])},
            **{"built_q": max(64, int(str(traits["hdim_q"]))), "built_v": max(64, int(str(traits["hdim_v"])))},
        }
        assert {name: inputs[name] for name in stated} == stated, kernel.name


def test_forward_problems_alone_are_learned() -> None:
    known = {model.family for model in models()}
    for use, learned in (("prefill", True), ("decode", True), ("backward", False), ("append", False)):
        for record in problems(ATTENTION, f"attention-tuning-{use}-bf16"):
            spec = {"pipeline": "tma", "tile": {"m0": 128, "n0": 128}, "mask": "none", "hdim_q": 64, "hdim_v": 64}
            assert (LEARNING.inputs(record, spec, 0) is not None) == learned
            assert LEARNING.family(record) in known
