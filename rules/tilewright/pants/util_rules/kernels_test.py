from __future__ import annotations

import json

import pytest

from pants.build_graph.address import Address
from tilewright.pants.target_types import ExpandedKernelField, GemmKernelTarget, GeneratedKernelTarget
from tilewright.pants.util_rules.kernels import kernel_of_target

ADDRESS = Address("kernels", target_name="one")


def test_a_kernel_target_becomes_a_partial_spec() -> None:
    target = GemmKernelTarget(
        {"arch": "gfx942", "dtype": "bf16", "tile": [128, 64, 32], "pad": [True, True, False], "persistent": False},
        ADDRESS,
    )
    assert kernel_of_target(target) == {
        "arch": "gfx942",
        "origin": "kernels:one",
        "spec": {
            "dtype": "bf16",
            "persistent": False,
            "tile": {"m": 128, "n": 64, "k": 32},
            "pad": {"m": True, "n": True, "k": False},
        },
    }


def test_a_generated_kernel_keeps_its_whole_spec() -> None:
    canonical = json.dumps({"arch": "sm_90a", "spec": {"op": "gemm"}})
    target = GeneratedKernelTarget({ExpandedKernelField.alias: canonical}, ADDRESS)
    assert kernel_of_target(target) == {"arch": "sm_90a", "spec": {"op": "gemm"}, "origin": "kernels:one"}


def test_a_wrong_number_of_extents_names_target_and_field() -> None:
    target = GemmKernelTarget({"arch": "gfx942", "tile": [128, 64]}, ADDRESS)
    with pytest.raises(ValueError, match=r"kernels:one: the field tile has 2 values; allowed: three integers"):
        kernel_of_target(target)
