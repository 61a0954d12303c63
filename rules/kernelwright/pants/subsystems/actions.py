"""Where the actions of compile plans run."""

from __future__ import annotations

from pants.option.option_types import StrOption
from pants.option.subsystem import Subsystem
from pants.util.strutil import softwrap


class ActionsSubsystem(Subsystem):
    options_scope = "kernelwright-actions"
    help = "Compile and link actions: each is one process that sees its inputs and pinned toolchains and nothing else."

    environment = StrOption(
        default=None,
        help=softwrap(
            """
            The environment in which they run: a name of `[environments-preview].names`, usually that of a
            `remote_environment`. Everything else runs on this machine. Unset: where the target that needs them runs.
            """
        ),
    )
