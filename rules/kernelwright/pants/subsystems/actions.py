"""Where the actions of compile plans run."""

from __future__ import annotations

from pants.option.option_types import StrOption
from pants.option.subsystem import Subsystem
from pants.util.strutil import softwrap


class ActionsSubsystem(Subsystem):
    options_scope = "kernelwright-actions"
    help = "Compile and link actions. Each is a process that sees only its inputs and pinned toolchains."

    environment = StrOption(
        default=None,
        help=softwrap(
            """
            The environment in which they run: a name from `[environments-preview].names`, usually of a
            `remote_environment`. All other processes run on this machine. By default they run in the environment of the
            target that needs them.
            """
        ),
    )
