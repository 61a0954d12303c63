from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from kernelwright.pants import performance
from kernelwright.pants.targets.kernel_set import ExpandedKernelField, GeneratedKernelTarget, KernelSetTarget
from kernelwright.pants.testing.doubles import in_place_of
from kernelwright.pants.util_rules import codegen, kernels, target_generation
from kernelwright.pants.util_rules.codegen import CodegenRequest, CodegenResponse
from pants.build_graph.address import Address
from pants.core.target_types import FileTarget
from pants.engine.internals.scheduler import ExecutionError
from pants.engine.rules import QueryRule
from pants.engine.target import Dependencies, DependenciesRequest, Targets
from pants.testutil.rule_runner import RuleRunner


def _source(asked: dict[str, Any]) -> str:
    return str(asked.get("set") or asked.get("config") or asked["problems"]["trace"])


@in_place_of(codegen.run_codegen)
async def fake_codegen(request: CodegenRequest) -> CodegenResponse:
    asked = json.loads(request.request)
    expanded = [
        {"arch": arch, "name": f"k_{_source(asked).replace(':', '_')}", "identity": "0" * 64, "spec": asked}
        for arch in asked["archs"]
    ]
    return CodegenResponse(json.dumps({"kernels": expanded}))


@pytest.fixture
def runner() -> RuleRunner:
    return RuleRunner(
        rules=[
            *target_generation.rules(),
            *kernels.rules(),
            *performance.rules(),
            fake_codegen,
            QueryRule(Targets, [DependenciesRequest]),
        ],
        target_types=[KernelSetTarget, GeneratedKernelTarget, FileTarget],
    )


def generated(runner: RuleRunner, name: str) -> GeneratedKernelTarget:
    target = runner.get_target(Address("k", target_name="s", generated_name=name))
    assert isinstance(target, GeneratedKernelTarget)
    return target


def test_one_target_for_each_kernel_and_arch(runner: RuleRunner) -> None:
    runner.write_files(
        {"k/BUILD": "kernel_set(name='s', archs=['gfx942', 'sm_90a'], set='gemm:essential', filter='c.x')"}
    )
    target = generated(runner, "sm_90a/k_gemm_essential")
    body = json.loads(target[ExpandedKernelField].value.canonical)
    assert body["arch"] == "sm_90a"
    assert body["spec"] == {
        "stage": "expand",
        "archs": ["gfx942", "sm_90a"],
        "set": "gemm:essential",
        "filter": "c.x",
    }


def test_a_config_is_a_file_of_the_target(runner: RuleRunner) -> None:
    runner.write_files({"k/BUILD": "kernel_set(name='s', archs=['gfx942'], config='c.json')", "k/c.json": "{}"})
    generated(runner, "gfx942/k_k/c.json")


@pytest.mark.parametrize("fields", ["", ", set='gemm:essential', config='c.json'"])
def test_neither_or_both_sources_are_refused(runner: RuleRunner, fields: str) -> None:
    runner.write_files({"k/BUILD": f"kernel_set(name='s', archs=['gfx942']{fields})", "k/c.json": "{}"})
    with pytest.raises(ExecutionError, match="k:s: give exactly one of the fields set, config and problems"):
        generated(runner, "gfx942/k_gemm_essential")


def test_recorded_problems_go_to_the_generator_with_their_budget(runner: RuleRunner) -> None:
    fields = "problems='t.json', sweep='s.csv', set='fp16_rcr_all', budget_kernels=4, budget_seconds=90.5"
    runner.write_files(
        {"k/BUILD": f"kernel_set(name='s', archs=['gfx942'], {fields})", "k/t.json": "{}", "k/s.csv": "x"}
    )
    body = json.loads(generated(runner, "gfx942/k_k/t.json")[ExpandedKernelField].value.canonical)
    assert body["spec"]["problems"] == {
        "trace": "k/t.json",
        "sweep": "k/s.csv",
        "set": "fp16_rcr_all",
        "budget_kernels": 4,
        "budget_seconds": 90.5,
    }


@pytest.mark.parametrize("field", ["sweep='s.csv'", "budget_kernels=4", "budget_seconds=1.0"])
def test_a_budget_without_problems_is_refused(runner: RuleRunner, field: str) -> None:
    build = f"kernel_set(name='s', archs=['gfx942'], set='gemm:essential', {field})"
    runner.write_files({"k/BUILD": build, "k/s.csv": "x"})
    with pytest.raises(
        ExecutionError, match="k:s: sweep, budget_kernels and budget_seconds go with the field problems"
    ):
        generated(runner, "gfx942/k_gemm_essential")


# Pants 2.17 is asked once for a set; newer ones resolve the dependencies of each kernel, and cheaply.
QUESTIONS_OF_TWO_SETS = 2 if sys.version_info < (3, 11) else 3


def test_all_kernels_of_a_set_ask_one_question_about_dependencies_where_pants_needs_it(runner: RuleRunner) -> None:
    sets = "".join(f"kernel_set(name='{name}', archs=['gfx942', 'sm_90a'], set='gemm:essential')\n" for name in "st")
    runner.write_files({"k/BUILD": sets})
    first, second = (generated(runner, f"{arch}/k_gemm_essential") for arch in ("gfx942", "sm_90a"))
    other = runner.get_target(Address("k", target_name="t", generated_name="gfx942/k_gemm_essential"))
    questions = {DependenciesRequest(target.get(Dependencies)) for target in (first, second, other)}
    assert len(questions) == QUESTIONS_OF_TWO_SETS
    for question in questions:
        assert not runner.request(Targets, [question])


def test_dependencies_are_known_after_the_kernel_that_was_asked_first_has_gone(runner: RuleRunner) -> None:
    for archs in (["gfx942", "sm_90a"], ["sm_90a"], ["gfx90a", "sm_90a"]):
        runner.write_files({"k/BUILD": f"kernel_set(name='s', archs={archs}, set='gemm:essential')"})
        for arch in archs:
            runner.set_options([])  # a new run
            asked = DependenciesRequest(generated(runner, f"{arch}/k_gemm_essential").get(Dependencies))
            assert not runner.request(Targets, [asked])


def test_kernels_of_an_untuned_process_have_dependencies_of_their_own(runner: RuleRunner) -> None:
    runner.set_options(["--no-kernelwright-performance-tune-daemon"])
    runner.write_files({"k/BUILD": "kernel_set(name='s', archs=['gfx942', 'sm_90a'], set='gemm:essential')"})
    targets = [generated(runner, f"{arch}/k_gemm_essential") for arch in ("gfx942", "sm_90a")]
    questions = {DependenciesRequest(target.get(Dependencies)) for target in targets}
    assert len(questions) == 2
    for question in questions:
        assert type(question.field) is Dependencies and not runner.request(Targets, [question])
