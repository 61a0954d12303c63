"""The option that switches ``performance`` on or off."""

from __future__ import annotations

from pants.option.option_types import BoolOption
from pants.option.subsystem import Subsystem
from pants.util.strutil import softwrap


class PerformanceSubsystem(Subsystem):
    options_scope = "kernelwright-performance"
    help = "Speed tuning of the Pants process for workspaces with thousands of kernels."

    tune_daemon = BoolOption(
        default=True,
        help=softwrap(
            """
            On Pants 2.17, let the process hash its requests for files by their contents, and resolve the dependencies
            of a kernel set once instead of once for each kernel. Results are the same without it. A daemon that has
            been tuned stays so until it ends. Nothing on newer versions of Pants.
            """
        ),
    )
