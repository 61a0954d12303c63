from __future__ import annotations

import json

import pytest

from kernelwright.pants.goals import check_set
from kernelwright.pants.targets.kernel_set import KernelSetTarget
from kernelwright.pants.testing.doubles import in_place_of
from kernelwright.pants.util_rules import codegen
from kernelwright.pants.util_rules.codegen import CodegenRequest, CodegenResponse
from pants.core.goals.check import CheckResult, CheckResults
from pants.engine.addresses import Address
from pants.engine.rules import QueryRule
from pants.testutil.rule_runner import RuleRunner

MISSING = "grouped_conv_fwd_fp16_x is in small and not in large on gfx942"


@in_place_of(codegen.run_codegen)
async def fake_generator(request: CodegenRequest) -> CodegenResponse:
    asked = json.loads(request.request)
    assert (request.command, asked["stage"], asked["archs"]) == ("plan", "check_set", ["gfx942"])
    return CodegenResponse(json.dumps({"problems": [MISSING] if asked["set"] == "small" else []}))


@pytest.fixture
def runner() -> RuleRunner:
    wanted = [QueryRule(CheckResult, [check_set.CheckOneSet])]
    wanted += [QueryRule(CheckResults, [check_set.KernelSetCheckRequest])]
    runner = RuleRunner(rules=[*check_set.rules(), fake_generator, *wanted], target_types=[KernelSetTarget])
    sets = "".join(f'kernel_set(name="{name}", archs=["gfx942"], set="{name}")\n' for name in ("small", "large"))
    runner.write_files({"src/BUILD": sets + 'kernel_set(name="own", archs=["gfx942"], config="own.json")'})
    return runner


def test_a_missing_kernel_is_named(runner: RuleRunner) -> None:
    result = runner.request(CheckResult, [check_set.CheckOneSet(Address("src", target_name="small"))])
    assert result.exit_code == 1 and result.stderr == f"src:small: {MISSING}"


@pytest.mark.parametrize(("name", "told"), [("large", "contained where"), ("own", "a configuration is in no set")])
def test_contained_sets_pass(runner: RuleRunner, name: str, told: str) -> None:
    result = runner.request(CheckResult, [check_set.CheckOneSet(Address("src", target_name=name))])
    assert result.exit_code == 0 and told in result.stdout


def test_kernels_lead_to_their_set_once(runner: RuleRunner) -> None:
    small = Address("src", target_name="small")
    field_sets = [check_set.KernelOfSetFieldSet(small.create_generated(name)) for name in ("a", "b")]
    results = runner.request(CheckResults, [check_set.KernelSetCheckRequest(field_sets)])
    assert [result.exit_code for result in results.results] == [1]
