"""Where the tile engine comes from."""

from __future__ import annotations

from pants.option.option_types import StrListOption, StrOption
from pants.option.subsystem import Subsystem
from pants.util.strutil import softwrap


class TileEngineSubsystem(Subsystem):
    options_scope = "kernelwright-tile-engine"
    help = softwrap(
        """
        The tile engine, which `./pants bench` runs. By default it is part of the `kernelwright` wheel that was built
        together with this plugin, pinned by its digest.
        """
    )

    targets = StrListOption(
        default=[], advanced=True, help="Python targets of a tile engine in this workspace, instead of the wheel."
    )
    resolve = StrOption(
        default=None, advanced=True, help="The resolve with the packages that a tile engine in this workspace needs."
    )
