"""``check``: every kernel of a set is also in the sets that promise to contain it.

Pants replaces a ``kernel_set`` by its kernels before a goal sees it, so the kernels lead back to their sets.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from kernelwright.pants.compat import concurrently, implicitly, rule
from kernelwright.pants.engine import graph
from kernelwright.pants.targets.kernel_set import ExpandedKernelField, KernelArchsField, RuleSetField
from kernelwright.pants.util_rules import codegen
from kernelwright.pants.util_rules.codegen import CodegenRequest
from pants.core.goals.check import CheckRequest, CheckResult, CheckResults
from pants.engine.addresses import Address
from pants.engine.rules import collect_rules
from pants.engine.target import FieldSet
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


@dataclass(frozen=True)
class KernelOfSetFieldSet(FieldSet):
    """Marks the kernels of ``kernel_set`` targets for the ``check`` goal."""

    required_fields = (ExpandedKernelField,)


class KernelSetCheckRequest(CheckRequest[KernelOfSetFieldSet]):
    """All kernels of all named sets."""

    field_set_type = KernelOfSetFieldSet
    tool_name = "kernelwright-sets"


@dataclass(frozen=True)
class CheckOneSet:
    """One ``kernel_set`` by its address."""

    address: Address


@rule(desc="Check kernel set", level=LogLevel.DEBUG)
async def check_set(request: CheckOneSet) -> CheckResult:
    target = await graph.target_at(request.address, "the check goal")
    name, archs = target[RuleSetField].value, list(target[KernelArchsField].value or ())
    if name is None:
        return CheckResult(0, f"{target.address}: a configuration is in no set", "", str(target.address))
    body = json.dumps({"stage": "check_set", "set": name, "archs": archs}, sort_keys=True)
    description = f"Check the kernel set {name}"
    asked = CodegenRequest("plan", body, description, str(target.address))
    response = await codegen.run_codegen(asked, **implicitly())
    problems = response.parse()["problems"]
    text = "\n".join(f"{target.address}: {problem}" for problem in problems)
    told = f"{target.address}: {name} is contained where it should be" if not problems else ""
    return CheckResult(1 if problems else 0, told, text, str(target.address))


@rule(desc="Check kernel sets", level=LogLevel.DEBUG)
async def check_sets(request: KernelSetCheckRequest) -> CheckResults:
    sets = sorted({field_set.address.maybe_convert_to_target_generator() for field_set in request.field_sets})
    results = await concurrently(check_set(CheckOneSet(address), **implicitly()) for address in sets)
    return CheckResults(results, checker_name=request.tool_name)


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(CheckRequest, KernelSetCheckRequest)]
