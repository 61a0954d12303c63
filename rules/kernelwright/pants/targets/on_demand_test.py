from __future__ import annotations

import pytest

from kernelwright.pants.targets import on_demand
from kernelwright.pants.targets.on_demand import OnDemandTarget
from pants.build_graph.address import Address
from pants.core.target_types import FileTarget
from pants.engine.rules import QueryRule
from pants.engine.target import Dependencies, DependenciesRequest, Targets
from pants.testutil.rule_runner import RuleRunner

BUILD = """
on_demand(name="x", argument="sim:gfx942", needs=[":a", ":b"])
file(name="a", source="a")
file(name="b", source="b")
"""


@pytest.fixture
def runner() -> RuleRunner:
    runner = RuleRunner(
        rules=[*on_demand.rules(), QueryRule(Targets, [DependenciesRequest])],
        target_types=[OnDemandTarget, FileTarget],
    )
    runner.write_files({"k/BUILD": BUILD, "k/a": "", "k/b": ""})
    return runner


def needed(runner: RuleRunner, *arguments: str) -> list[str]:
    runner.set_options([f"--run-args={arguments!r}"], env_inherit={"PATH", "PYENV_ROOT", "HOME"})
    target = runner.get_target(Address("k", target_name="x"))
    targets = runner.request(Targets, [DependenciesRequest(target[Dependencies])])
    return sorted(target.address.target_name for target in targets)


def test_a_run_with_the_argument_has_the_dependencies(runner: RuleRunner) -> None:
    assert needed(runner, "--device", "sim:gfx942", "--json") == ["a", "b"]
    assert needed(runner, "--device=sim:gfx942") == ["a", "b"]


def test_other_runs_have_none(runner: RuleRunner) -> None:
    assert needed(runner) == []
    assert needed(runner, "--device", "cpu") == []
    assert needed(runner, "--device", "sim:gfx9421", "--note=sim:gfx942=x") == []


def test_a_need_that_does_not_exist_is_an_error(runner: RuleRunner) -> None:
    runner.write_files({"k/BUILD": BUILD.replace('":b"', '":c"')})
    assert needed(runner) == []
    with pytest.raises(Exception, match="k:c"):
        needed(runner, "sim:gfx942")
