from __future__ import annotations

from kernelwright.dispatch.operations.norm import NormProblem, words


def test_what_a_kernel_must_have() -> None:
    forward = words.asked(NormProblem("rms", 8, 64, "bf16", "int8"), {})
    assert forward == {"op": "norm", "kind": "rms", "direction": "forward", "dtype": "bf16", "dtype_y": "int8"}
    assert words.asked(NormProblem("layer", 8, 64, backward=True), {})["direction"] == "backward"
