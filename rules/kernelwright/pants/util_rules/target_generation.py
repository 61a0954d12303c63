"""Generate the targets of a ``kernel_set``: one for each kernel and architecture."""

from __future__ import annotations

import hashlib
import json

from kernelwright.pants.compat import implicitly, rule
from kernelwright.pants.engine import digests
from kernelwright.pants.performance import Tuning, WholeKernel
from kernelwright.pants.targets.kernel import LimitsField
from kernelwright.pants.targets.kernel_set import (
    ExpandedKernelField,
    GeneratedKernelTarget,
    KernelArchsField,
    KernelConfigField,
    KernelFilterField,
    KernelSetTarget,
    RuleSetField,
)
from kernelwright.pants.util_rules import kernels
from kernelwright.pants.util_rules.kernels import ExpandRequest
from pants.engine.fs import EMPTY_DIGEST
from pants.engine.rules import collect_rules
from pants.engine.target import GeneratedTargets, GenerateTargetsRequest, InvalidFieldException
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


class GenerateKernels(GenerateTargetsRequest[KernelSetTarget]):
    """Pants makes this request whenever it lists the targets of a ``kernel_set``."""

    generate_from = KernelSetTarget


@rule(desc="Generate kernel targets", level=LogLevel.DEBUG)
async def generate_kernels(request: GenerateKernels, tuning: Tuning) -> GeneratedTargets:
    generator = request.generator
    rule_set, config = generator[RuleSetField].value, generator[KernelConfigField].value
    if (rule_set is None) == (config is None):
        raise InvalidFieldException(f"{generator.address}: give exactly one of the fields set and config")
    body: dict[str, object] = {"stage": "expand", "archs": list(generator[KernelArchsField].value or ())}
    if generator[KernelFilterField].value:
        body["filter"] = generator[KernelFilterField].value
    if generator[LimitsField].value:
        body["limits"] = dict(generator[LimitsField].value or {})
    digest = EMPTY_DIGEST
    if config is None:
        body["set"] = rule_set
    else:
        path = generator[KernelConfigField].file_path
        body["config"] = path
        digest = await digests.workspace_files([path or ""], f"{generator.address}'s config field")
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


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(GenerateTargetsRequest, GenerateKernels)]
