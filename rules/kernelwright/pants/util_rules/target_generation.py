"""Generates the targets of a ``kernel_set``: one for each kernel and architecture."""

from __future__ import annotations

import hashlib
import json

from kernelwright.pants.compat import implicitly, rule
from kernelwright.pants.engine import digests
from kernelwright.pants.performance import Tuning, WholeKernel
from kernelwright.pants.targets.kernel import LimitsField
from kernelwright.pants.targets.kernel_set import (
    BudgetKernelsField,
    BudgetSecondsField,
    ExpandedKernelField,
    GeneratedKernelTarget,
    KernelArchsField,
    KernelConfigField,
    KernelFilterField,
    KernelProblemsField,
    KernelSetTarget,
    KernelSweepField,
    RuleSetField,
)
from kernelwright.pants.util_rules import kernels
from kernelwright.pants.util_rules.kernels import ExpandRequest
from pants.engine.fs import EMPTY_DIGEST
from pants.engine.rules import collect_rules
from pants.engine.target import GeneratedTargets, GenerateTargetsRequest, InvalidFieldException, Target
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


class GenerateKernels(GenerateTargetsRequest[KernelSetTarget]):
    """The request that Pants makes when it lists the targets of a ``kernel_set``."""

    generate_from = KernelSetTarget


@rule(desc="Generate kernel targets", level=LogLevel.DEBUG)
async def generate_kernels(request: GenerateKernels, tuning: Tuning) -> GeneratedTargets:
    generator = request.generator
    body: dict[str, object] = {"stage": "expand", "archs": list(generator[KernelArchsField].value or ())}
    if generator[KernelFilterField].value:
        body["filter"] = generator[KernelFilterField].value
    if generator[LimitsField].value:
        body["limits"] = dict(generator[LimitsField].value or {})
    source, files = _source(generator)
    body.update(source)
    digest = await digests.workspace_files(files, f"{generator.address}'s files") if files else EMPTY_DIGEST
    asked = ExpandRequest(json.dumps(body, sort_keys=True), str(generator.address), digest)
    expanded = await kernels.expand_kernels(asked, **implicitly())
    names = [f"{kernel.arch}/{kernel.name}" for kernel in expanded.kernels]
    expansion = hashlib.sha256("\n".join((request.template_address.spec, *names)).encode()).hexdigest()
    shared = expansion if tuning.on else None
    return GeneratedTargets(
        generator,
        [
            GeneratedKernelTarget(
                {
                    **request.template,
                    ExpandedKernelField.alias: WholeKernel(kernel.identity, kernel.canonical, shared),
                },
                request.template_address.create_generated(name),
            )
            for name, kernel in zip(names, expanded.kernels)
        ],
    )


def _source(generator: Target) -> tuple[dict[str, object], list[str]]:
    """Return the source of the kernels, as keys of a request, and the files that it names."""
    files = {
        alias: generator[field].file_path
        for alias, field in (
            ("config", KernelConfigField),
            ("trace", KernelProblemsField),
            ("sweep", KernelSweepField),
        )
        if generator[field].value is not None
    }
    rule_set = generator[RuleSetField].value
    stated = {**files, **({"set": rule_set} if rule_set is not None else {})}
    budget = {field.alias: generator[field].value for field in (BudgetKernelsField, BudgetSecondsField)}
    more = {alias: value for alias, value in budget.items() if value is not None}
    listed = [path for path in files.values() if path]
    if "trace" in files:
        return {"problems": {**stated, **more}}, listed
    if more or "sweep" in files:
        raise InvalidFieldException(
            f"{generator.address}: sweep, budget_kernels and budget_seconds go with the field problems; add it"
        )
    if len(stated) != 1:
        raise InvalidFieldException(f"{generator.address}: give exactly one of the fields set, config and problems")
    return dict(stated), listed


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(GenerateTargetsRequest, GenerateKernels)]
