from __future__ import annotations

import pytest

from kernelwright.pants.util_rules import toolchains
from kernelwright.pants.util_rules.toolchains import Toolchains
from pants.engine.internals.scheduler import ExecutionError
from pants.engine.rules import QueryRule
from pants.testutil.rule_runner import RuleRunner


@pytest.fixture
def runner() -> RuleRunner:
    return RuleRunner(rules=[*toolchains.rules(), QueryRule(Toolchains, ())])


def test_wheels_are_the_default(runner: RuleRunner) -> None:
    chosen = runner.request(Toolchains, [])
    assert chosen.to_json() == {"host": "zig", "hip": "wheel", "cuda": "clang"}


def test_an_unknown_toolchain_is_refused(runner: RuleRunner) -> None:
    runner.set_options(["--kernelwright-hip-toolchain=hipcc"])
    with pytest.raises(ExecutionError, match=r"\[kernelwright-hip\].toolchain = 'hipcc'; allowed: wheel, stock, rocm"):
        runner.request(Toolchains, [])


def test_a_system_toolchain_needs_a_path(runner: RuleRunner) -> None:
    runner.set_options(["--kernelwright-cuda-toolchain=system-nvcc"])
    with pytest.raises(ExecutionError, match=r"needs \[kernelwright-cuda\].path"):
        runner.request(Toolchains, [])


def test_a_system_tool_that_cannot_run_is_refused(runner: RuleRunner) -> None:
    runner.set_options(["--kernelwright-host-toolchain=system", "--kernelwright-host-path=/nowhere/g++"])
    with pytest.raises(ExecutionError, match=r"\[kernelwright-host\].path = '/nowhere/g\+\+' cannot be run"):
        runner.request(Toolchains, [])


def test_a_system_tool_is_fingerprinted(runner: RuleRunner) -> None:
    runner.set_options(["--kernelwright-host-toolchain=system", "--kernelwright-host-path=/bin/cat"])
    host = runner.request(Toolchains, []).host
    assert (host.id, host.path) == ("system", "/bin/cat")
    assert host.fingerprint is not None and len(host.fingerprint) == 64


def test_nvcc_of_the_wheel_is_keyed_by_its_host_compiler(runner: RuleRunner) -> None:
    runner.set_options(["--kernelwright-cuda-toolchain=nvcc", "--kernelwright-cuda-host-compiler=/bin/cat"])
    chosen = runner.request(Toolchains, []).to_json()["cuda"]
    assert isinstance(chosen, dict)
    assert (chosen["choice"], chosen["host_compiler"]) == ("nvcc", "/bin/cat")
