"""``on_demand``: dependencies of a program that only a run with a certain argument has."""

from __future__ import annotations

from pants.engine.target import COMMON_TARGET_FIELDS, Dependencies, SpecialCasedDependencies, StringField, Target
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
