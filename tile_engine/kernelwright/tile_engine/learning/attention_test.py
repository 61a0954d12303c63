"""What learning reads of a spec is what the kernel's source says of itself; what is learned has a family."""

from __future__ import annotations

from kernelwright.codegen.operations.attention.cutlass import context
from kernelwright.codegen.selecting.selection import load_archs, select
from kernelwright.tile_engine.learning.attention import AttentionLearning
from kernelwright.tile_engine.problems.models import models
from kernelwright.tile_engine.problems.registry import problems
from kernelwright.tile_engine.registry import measurable

LEARNING, ATTENTION = AttentionLearning(), measurable("attention")
RECORD = ATTENTION.read({"batch": 2, "seqlen_q": 1, "seqlen_k": 100, "nhead_q": 8, "hdim_q": 64, "dtype": "bf16"})
FORWARD = ("fwd", "fwd_splitkv", "batch_prefill")


def test_numbers_of_kernels_are_their_traits() -> None:
    (selection,) = select("set", "fmha_release", ["sm_90a"], load_archs())
    forward = [kernel for kernel in selection.kernels if kernel.spec.model_dump()["family"] in FORWARD]
    assert len(forward) > 10
    for kernel in forward:
        traits = context(kernel)["traits"]
        assert isinstance(traits, dict)
        found = LEARNING.inputs(RECORD, kernel.spec.model_dump(mode="json"), 3)
        assert found is not None and found["splits"] == 3
        stated = {
            **{"tile_m": traits["tile_m0"], "tile_n": traits["tile_n0"], "packs": traits.get("packs_heads", 0)},
            **{"blocks": max(1, traits.get("blocks_per_cu", 0)), "any_mask": "GENERIC" in traits["masks"]},
            **{"built_q": max(64, traits["hdim_q"]), "built_v": max(64, traits["hdim_v"])},
        }
        assert {name: found[name] for name in stated} == stated, kernel.name


def test_forward_problems_alone_are_learned() -> None:
    known = {model.family for model in models()}
    for use, learned in (("prefill", True), ("decode", True), ("backward", False), ("append", False)):
        for record in problems(ATTENTION, f"attention-tuning-{use}-bf16"):
            spec = {"pipeline": "tma", "tile": {"m0": 128, "n0": 128}, "mask": "none", "hdim_q": 64, "hdim_v": 64}
            assert (LEARNING.inputs(record, spec, 0) is not None) == learned
            assert LEARNING.family(record) in known
