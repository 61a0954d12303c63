"""What a gradient that no kernel computes is refused with."""

from __future__ import annotations

import re

import pytest

from kernelwright.dispatch import NoKernelError
from kernelwright.torch.operators.attention_common import with_advice


@pytest.mark.parametrize(
    ("features", "advice"),
    [
        ((0.1, 0.0, False), "pass dropout_p=0, with dropout"),
        ((0.0, 30.0, False), "pass soft_cap=0"),
        ((0.1, 0.0, True), "pass attn_mask.detach(), whose gradient is not computed and dropout_p=0"),
    ],
)
def test_refusals_say_what_to_do_without(features: tuple[float, float, bool], advice: str) -> None:
    with pytest.raises(NoKernelError, match=f"^none of 3 kernels; .*{re.escape(advice)}"), with_advice(*features):
        raise NoKernelError("none of 3 kernels")


def test_other_refusals_stay_what_they_are() -> None:
    with pytest.raises(NoKernelError, match=r"^none of 3 kernels$"), with_advice(0.0, 0.0):
        raise NoKernelError("none of 3 kernels")
