"""``on_demand``: what a program needs only when it is run with a certain argument."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.pants.engine import graph
from kernelwright.pants.targets.on_demand import OnDemandArgumentField, OnDemandNeedsField
from pants.core.goals.run import RunSubsystem
from pants.engine.rules import collect_rules, rule
from pants.engine.target import FieldSet, InferDependenciesRequest, InferredDependencies
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel


@dataclass(frozen=True)
class OnDemandFieldSet(FieldSet):
    required_fields = (OnDemandArgumentField, OnDemandNeedsField)

    argument: OnDemandArgumentField
    needs: OnDemandNeedsField


class InferOnDemand(InferDependenciesRequest[OnDemandFieldSet]):
    """Asked for whenever something depends on an ``on_demand`` target."""

    infer_from = OnDemandFieldSet


@rule(desc="Look for what the program's arguments need", level=LogLevel.DEBUG)
async def infer_on_demand(request: InferOnDemand, run: RunSubsystem) -> InferredDependencies:
    wanted = request.field_set.argument.value
    # "--device sim:gfx942" are two arguments, "--device=sim:gfx942" is one.
    if not any(wanted in (argument, argument.partition("=")[2]) for argument in run.args):
        return InferredDependencies([])
    return InferredDependencies(await graph.named_addresses(request.field_set.needs))


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(InferDependenciesRequest, InferOnDemand)]
