from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelwright.pants.goals import kernels as kernels_goal
from kernelwright.pants.goals.kernels import Kernels
from kernelwright.pants.targets.operation_kernels import kernel_target
from kernelwright.pants.testing.doubles import in_place_of
from kernelwright.pants.util_rules import compile_commands, kernels, resource_report
from kernelwright.pants.util_rules.compile_commands import CompileCommands, CompileCommandsRequest
from kernelwright.pants.util_rules.kernels import ExpandedKernel, ExpandedKernels, ExpandRequest
from kernelwright.pants.util_rules.resource_report import ResourceReport, ResourceReportRequest
from pants.engine.fs import EMPTY_DIGEST
from pants.engine.internals.scheduler import ExecutionError
from pants.testutil.rule_runner import RuleRunner

GemmKernelTarget = kernel_target("gemm")


@in_place_of(kernels.expand_kernels)
async def fake_expansion(request: ExpandRequest) -> ExpandedKernels:
    return ExpandedKernels((ExpandedKernel("gfx942", "gemm", "0" * 64, '{"arch":"gfx942","spec":{}}'),))


@in_place_of(compile_commands.compile_commands)
async def no_commands(request: CompileCommandsRequest) -> CompileCommands:
    return CompileCommands(EMPTY_DIGEST, 0)


@in_place_of(resource_report.report_resources)
async def no_report(request: ResourceReportRequest) -> ResourceReport:
    return ResourceReport("")


@pytest.fixture
def runner() -> RuleRunner:
    runner = RuleRunner(
        rules=[*kernels_goal.rules(), fake_expansion, no_commands, no_report], target_types=[GemmKernelTarget]
    )
    runner.write_files({"src/BUILD": 'gemm_kernel(name="one", arch="gfx942", dtype="fp16")'})
    return runner


def test_kernels_are_exported_below_dist(runner: RuleRunner) -> None:
    result = runner.run_goal_rule(Kernels, args=["--export-json=a/x.json", "src:one"])
    assert result.exit_code == 0 and "Wrote 1 kernels to dist/a/x.json." in result.stderr
    (kernel,) = json.loads(Path(runner.build_root, "dist/a/x.json").read_text())["kernels"]
    assert kernel["name"] == "gemm"


@pytest.mark.parametrize("path", ["../../x.json", "../victim", "/tmp/x.json", "a/../../x", "b\\..\\c", "n" * 300])
def test_no_file_outside_dist_is_written(runner: RuleRunner, path: str) -> None:
    victim = Path(runner.build_root, "victim")
    victim.write_text("mine")
    with pytest.raises(ExecutionError, match=r"--kernels-export-json is .*; allowed: a path below dist"):
        runner.run_goal_rule(Kernels, args=[f"--export-json={path}", "src:one"])
    assert victim.read_text() == "mine"


def test_no_kernels_is_bad_input(runner: RuleRunner) -> None:
    assert runner.run_goal_rule(Kernels, args=["::"]).exit_code == 0
    runner.write_files({"src/BUILD": ""})
    assert runner.run_goal_rule(Kernels, args=["::"]).exit_code == 2
