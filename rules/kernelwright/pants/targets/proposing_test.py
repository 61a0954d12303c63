from __future__ import annotations

from typing import Any

import pytest

from kernelwright.pants.targets.kernel_library import KernelLibraryTarget
from kernelwright.pants.targets.kernel_set import KernelSetTarget
from kernelwright.pants.targets.operation_kernels import kernel_target
from pants.build_graph.address import Address
from pants.engine.target import InvalidTargetException, Target

ADDRESS = Address("kernels", target_name="one")


@pytest.mark.parametrize(
    ("target", "fields", "proposal"),
    [
        (kernel_target("gemm"), {"arch": "gfx942", "layuot": "rcr"}, "Did you mean `layout` instead of `layuot`?"),
        (kernel_target("attention"), {"arch": "gfx942", "hdim_qq": 64}, "Did you mean `hdim_q` instead of `hdim_qq`?"),
        (KernelSetTarget, {"arch": ["gfx942"]}, "Did you mean `archs` instead of `arch`?"),
        (KernelLibraryTarget, {"library_nam": "x"}, "Did you mean `library_name` instead of `library_nam`?"),
    ],
)
def test_a_misspelt_field_gets_a_proposal(target: type[Target], fields: dict[str, Any], proposal: str) -> None:
    with pytest.raises(InvalidTargetException) as raised:
        target(fields, ADDRESS)
    text = str(raised.value)
    assert "Unrecognized field `" in text and "Valid fields for the target type" in text and text.endswith(proposal)


def test_other_errors_stay() -> None:
    for fields in ({"archs": ["gfx942"], "quite_another": 1}, {"archs": 5}):
        with pytest.raises(InvalidTargetException) as raised:
            KernelSetTarget(fields, ADDRESS)
        assert "Did you mean" not in str(raised.value)
    assert KernelSetTarget({"archs": ["gfx942"], "set": "gemm:essential"}, ADDRESS).address == ADDRESS
