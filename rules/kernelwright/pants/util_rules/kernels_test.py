from __future__ import annotations

import json

import pytest

from kernelwright.pants.performance import WholeKernel
from kernelwright.pants.targets.kernel_set import ExpandedKernelField, GeneratedKernelTarget
from kernelwright.pants.targets.operation_kernels import kernel_target
from kernelwright.pants.util_rules.kernels import kernel_of_target
from pants.backend.project_info.peek import TargetData, render_json
from pants.build_graph.address import Address
from pants.engine.target import InvalidTargetException

GemmKernelTarget = kernel_target("gemm")

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
            "op": "gemm",
            "dtype": "bf16",
            "persistent": False,
            "tile": {"m": 128, "n": 64, "k": 32},
            "pad": {"m": True, "n": True, "k": False},
        },
    }


def generated_kernel(kernel: str) -> GeneratedKernelTarget:
    return GeneratedKernelTarget({ExpandedKernelField.alias: kernel}, ADDRESS)


def test_a_generated_kernel_keeps_its_whole_spec() -> None:
    canonical = json.dumps({"arch": "sm_90a", "spec": {"op": "gemm"}})
    target = generated_kernel(WholeKernel("0" * 64, canonical, "set"))
    assert kernel_of_target(target) == {"arch": "sm_90a", "spec": {"op": "gemm"}, "origin": "kernels:one"}


def test_limits_travel_beside_the_spec() -> None:
    target = GemmKernelTarget({"arch": "gfx942", "dtype": "bf16", "limits": {"max_vgpr_spills": 0}}, ADDRESS)
    assert kernel_of_target(target) == {
        "arch": "gfx942",
        "origin": "kernels:one",
        "spec": {"op": "gemm", "dtype": "bf16"},
        "limits": {"max_vgpr_spills": 0},
    }
    canonical = json.dumps({"arch": "sm_90a", "limits": {"max_registers": 168}, "spec": {}})
    generated = generated_kernel(WholeKernel("0" * 64, canonical, "set"))
    kernel = kernel_of_target(generated)
    assert kernel is not None and kernel["limits"] == {"max_registers": 168}


@pytest.mark.parametrize("limits", [["max_vgpr_spills"], {"max_vgpr_spills": "0"}, {"max_vgpr_spills": True}, 3])
def test_limits_are_whole_numbers_by_name(limits: object) -> None:
    with pytest.raises(InvalidTargetException, match=r"'limits' field in target kernels:one must be .*max_vgpr_spills"):
        GemmKernelTarget({"arch": "gfx942", "limits": limits}, ADDRESS)


def test_ten_thousand_kernels_are_listed_without_their_specs() -> None:
    kernel = WholeKernel("0" * 64, json.dumps({"arch": "sm_90a", "spec": {"op": "gemm"}}), "set")
    target = generated_kernel(kernel)
    (listed,) = json.loads(render_json([TargetData(target, None, ())]))
    assert listed["_kernel"] == "0" * 64
    assert "spec" not in json.dumps(listed)


def test_the_same_kernel_spelt_in_another_way_is_another_value() -> None:
    kernel = WholeKernel("0" * 64, "{}", "set")
    assert kernel == WholeKernel("0" * 64, "{}", "set")
    assert hash(kernel) == hash(WholeKernel("0" * 64, "{}", "set"))
    assert kernel != WholeKernel("0" * 64, "[]", "set")
    assert kernel != WholeKernel("0" * 64, "{}", "another set")
    assert kernel != "0" * 64


def test_a_generated_kernel_is_not_written_by_hand() -> None:
    with pytest.raises(
        InvalidTargetException, match=r"kernels:one: generated_kernel .* write a kernel, e\.g\. gemm_kernel, or"
    ):
        generated_kernel("{}")
