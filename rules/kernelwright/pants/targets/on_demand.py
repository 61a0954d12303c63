"""``on_demand``: dependencies that a program has only in a run with a certain argument."""

from __future__ import annotations

from dataclasses import dataclass

from kernelwright.pants.compat import rule
from kernelwright.pants.engine import graph
from pants.core.goals.run import RunSubsystem
from pants.engine.rules import collect_rules
from pants.engine.target import (
    COMMON_TARGET_FIELDS,
    Dependencies,
    FieldSet,
    InferDependenciesRequest,
    InferredDependencies,
    SpecialCasedDependencies,
    StringField,
    Target,
)
from pants.engine.unions import UnionRule
from pants.util.logging import LogLevel
from pants.util.strutil import help_text


class OnDemandArgumentField(StringField):
    alias = "argument"
    required = True
    help = 'The argument, or the value of an option, e.g. `"sim:gfx942"` for `--device sim:gfx942`.'


class OnDemandNeedsField(SpecialCasedDependencies):
    alias = "needs"
    required = True
    help = "The dependencies of a run with that argument."


class OnDemandTarget(Target):
    alias = "on_demand"
    core_fields = (*COMMON_TARGET_FIELDS, Dependencies, OnDemandArgumentField, OnDemandNeedsField)
    help = help_text(
        """
        Dependencies of a program that it needs only when it is run with a certain argument:
        `./pants run <program> -- <argument>`.

        A target that depends on it depends on `needs` in such a run, and on nothing otherwise: other runs, tests and
        packages do not build it.
        """
    )


@dataclass(frozen=True)
class OnDemandFieldSet(FieldSet):
    required_fields = (OnDemandArgumentField, OnDemandNeedsField)

    argument: OnDemandArgumentField
    needs: OnDemandNeedsField


class InferOnDemand(InferDependenciesRequest[OnDemandFieldSet]):
    """The dependencies of an ``on_demand`` target in this run."""

    infer_from = OnDemandFieldSet


@rule(desc="Infer the dependencies that the program's arguments need", level=LogLevel.DEBUG)
async def infer_on_demand(request: InferOnDemand, run: RunSubsystem) -> InferredDependencies:
    wanted = request.field_set.argument.value
    # "--device sim:gfx942" is two arguments, "--device=sim:gfx942" is one.
    if not any(wanted in (argument, argument.partition("=")[2]) for argument in run.args):
        return InferredDependencies([])
    return InferredDependencies(await graph.named_addresses(request.field_set.needs))


def rules() -> list[object]:
    return [*collect_rules(), UnionRule(InferDependenciesRequest, InferOnDemand)]
